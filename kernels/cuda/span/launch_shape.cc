#include "kernels/cuda/span/launch_shape.h"

#include <algorithm>
#include <iterator>

#include "kernels/base/check.h"
#include "kernels/cuda/span/span_warpgroup.h"
#include "kernels/cuda/span/tile_program.h"
#include "kernels/cuda/span/variants.h"

namespace longview::kernels::cuda {

int PaddedDim(int Dk, int Dv) {
  KERNEL_CHECK(std::min(Dk, Dv) >= 1 && std::max(Dk, Dv) <= kMaxHeadDim);
  return (std::max(Dk, Dv) + 31) / 32 * 32;
}

int SharedBytes(Element element, int padded_dim, bool biased) {
  return WithPaddedDim(padded_dim, [&]<int kD>(HeadDim<kD>) {
    return WithElement(element, [&]<Element kElement>(ElementType<kElement>) {
      using Shared = TileProgramShared<kD, kElement>;
      return biased ? Shared::kBytesWithBias : Shared::kBytes;
    });
  });
}

SpanKernel KernelOf(const SpanCall& call, SpanPhase phase, bool warpgroups) {
  if (phase == SpanPhase::kDecode) return SpanKernel::kRows;
  const bool tables = std::any_of(std::begin(call.tables), std::end(call.tables),
                                  [](const SpanTable& table) { return table.data != nullptr; });
  // A panel of 64 columns half empty would cost what products by wgmma save.
  const bool whole_panels = PaddedDim(call.Dk, call.Dv) % kPanelColumns == 0;
  return warpgroups && whole_panels && !tables && call.element != Element::kFloat32
             ? SpanKernel::kWarpgroups
             : SpanKernel::kTiles;
}

SpanLaunch ShapeLaunch(const PlanCapacity& capacity, const SpanCall& call, SpanKernel kernel) {
  SpanLaunch launch;
  launch.kernel = kernel;
  launch.padded_dim = PaddedDim(call.Dk, call.Dv);
  launch.items = capacity.items;
  launch.merges = capacity.merges;
  launch.shared_bytes = SharedBytes(call.element, launch.padded_dim, capacity.biases > 0);
  if (kernel == SpanKernel::kWarpgroups) {
    launch.padded_dim = launch.padded_dim <= 64 ? 64 : 128;
    launch.shared_bytes =
        launch.padded_dim == 64 ? WarpgroupShared<64>::kBytes : WarpgroupShared<128>::kBytes;
  }
  return launch;
}

void CheckDeviceCall(const Plan& plan, const SpanCall& call) {
  KERNEL_CHECK(call.Dk >= 1 && call.Dk <= kMaxHeadDim && call.Dv >= 1 && call.Dv <= kMaxHeadDim);
  KERNEL_CHECK(call.H >= 1 && call.kv_group >= 1 && call.H % call.kv_group == 0);
  KERNEL_CHECK(call.sources_used <= kMaxDeviceSources);
  KERNEL_CHECK(plan.sources.size() == static_cast<size_t>(call.sources_used));
  KERNEL_CHECK(plan.partial_slots == 0 || call.part_o != nullptr);
  for (const Span& span : plan.spans) {
    KERNEL_CHECK(span.key_step == 1);
    KERNEL_CHECK(span.source >= 0 && span.source < call.sources_used);
    const SpanSource& source = call.sources[span.source];
    KERNEL_CHECK(span.keys <= 0 || (source.k != nullptr && source.v != nullptr));
    KERNEL_CHECK(span.bias < 0 || plan.biases[span.bias].id < kMaxTables);
  }
}

}  // namespace longview::kernels::cuda
