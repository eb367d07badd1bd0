#include "kernels/cuda/span/span_forward.cuh"

namespace longview::kernels::cuda {

Status PrepareBFloat16Tiles() { return PrepareSpanTiles<Element::kBFloat16>(); }

Status LaunchBFloat16Tiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                           const SpanLaunch& launch) {
  return LaunchSpanTiles<Element::kBFloat16>(stream, plan, call, launch);
}

}  // namespace longview::kernels::cuda
