#include "kernels/cuda/span/span_tiles.cuh"

namespace longview::kernels::cuda {

template Status PrepareTiles<Element::kFloat32>();
template Status LaunchTiles<Element::kFloat32>(Stream*, const PlanView&, const SpanCall&,
                                               const SpanLaunch&);

}  // namespace longview::kernels::cuda
