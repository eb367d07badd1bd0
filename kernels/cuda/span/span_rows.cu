// The decode step's launches; see span_rows.h.
#include "kernels/cuda/span/span_rows.h"

#include "kernels/cuda/span/item_kernel.cuh"
#include "kernels/cuda/span/span_forward.cuh"
#include "kernels/cuda/span/variants.h"

namespace longview::kernels::cuda {

Status LaunchSpanRows(Stream* stream, const PlanView& plan, const SpanCall& call,
                      const SpanLaunch& launch) {
  return WithPaddedDim(launch.padded_dim, [&]<int kD>(HeadDim<kD>) {
    return WithElement(call.element, [&]<Element kElement>(ElementType<kElement>) {
      using Program = SpanRows<DeviceMachine, kD, kElement>;
      return LaunchItems<Program>(stream, plan, call, launch.items, Program::Shared::kBytes);
    });
  });
}

}  // namespace longview::kernels::cuda
