// The decode step's kernels; see span_rows.h.
#include "kernels/cuda/span/span_rows.h"

#include "kernels/cuda/checked.cuh"
#include "kernels/cuda/span/device_machine.cuh"
#include "kernels/cuda/span/span_forward.cuh"

namespace longview::kernels::cuda {
namespace {

template <int kD, Element kElement>
__global__ void __launch_bounds__(kRowsThreads)
    SpanRowsKernel(const __grid_constant__ PlanView plan, const __grid_constant__ SpanCall call) {
  __shared__ __align__(16) uint16_t shared[RowsShape<kD>::kSharedBytes / 2];
  if (static_cast<int32_t>(blockIdx.x) >= plan.counts->items) return;
  const Item item = plan.items[blockIdx.x];
  DeviceMachine machine(shared);
  typename SpanRows<DeviceMachine, kD, kElement>::Lanes lanes;
  SpanRows<DeviceMachine, kD, kElement>(machine, plan, call, item).Run(lanes);
}

template <int kD>
Status Launch(Stream* stream, const PlanView& plan, const SpanCall& call, int items) {
  switch (call.element) {
    case Element::kFloat32:
      SpanRowsKernel<kD, Element::kFloat32><<<items, kRowsThreads, 0, stream->stream>>>(plan, call);
      break;
    case Element::kBFloat16:
      SpanRowsKernel<kD, Element::kBFloat16>
          <<<items, kRowsThreads, 0, stream->stream>>>(plan, call);
      break;
    case Element::kFloat16:
      SpanRowsKernel<kD, Element::kFloat16><<<items, kRowsThreads, 0, stream->stream>>>(plan, call);
      break;
  }
  return LaunchStatus();
}

}  // namespace

Status LaunchSpanRows(Stream* stream, const PlanView& plan, const SpanCall& call,
                      const SpanLaunch& launch) {
  switch (launch.padded_dim) {
    case 32:
      return Launch<32>(stream, plan, call, launch.items);
    case 64:
      return Launch<64>(stream, plan, call, launch.items);
    case 96:
      return Launch<96>(stream, plan, call, launch.items);
    case 128:
      return Launch<128>(stream, plan, call, launch.items);
    default:
      return ToStatus(cudaErrorInvalidValue);
  }
}

}  // namespace longview::kernels::cuda
