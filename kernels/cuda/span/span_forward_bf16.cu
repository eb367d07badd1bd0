#include "kernels/cuda/span/span_tiles.cuh"

namespace longview::kernels::cuda {

template Status PrepareTiles<Element::kBFloat16>();
template Status LaunchTiles<Element::kBFloat16>(Stream*, const PlanView&, const SpanCall&,
                                                const SpanLaunch&);

}  // namespace longview::kernels::cuda
