#include "kernels/cuda/span/span_forward.cuh"

namespace longview::kernels::cuda {

Status PrepareFloat16Tiles() { return PrepareSpanTiles<Element::kFloat16>(); }

Status LaunchFloat16Tiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                          const SpanLaunch& launch) {
  return LaunchSpanTiles<Element::kFloat16>(stream, plan, call, launch);
}

}  // namespace longview::kernels::cuda
