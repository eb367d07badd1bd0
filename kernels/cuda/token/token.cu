#include "kernels/cuda/token/token.cuh"

#include "kernels/cuda/program.cuh"
#include "kernels/cuda/token/cache_programs.h"
#include "kernels/cuda/token/product_programs.h"
#include "kernels/cuda/token/stream_programs.h"

namespace longview::kernels::cuda {
namespace {

// The program of T = float or bfloat16.
template <template <typename> typename Program>
Status LaunchTyped(Stream* stream, const typename Program<float>::Args& args) {
  return args.dtype == DType::kFloat32 ? Launch<Program<float>>(stream, args)
                                       : Launch<Program<BFloat16>>(stream, args);
}

template <typename T>
using StreamNormProgram = NormProgram<StreamRows, T>;
template <typename T>
using StreamProgram = ElementProgram<StreamElements<T>>;
template <typename T>
using StoreProgram = ElementProgram<StoreElements<T>>;

Status FollowStream(Stream* stream, const StreamRows& args) {
  return args.norm.gamma != nullptr ? LaunchTyped<StreamNormProgram>(stream, args)
                                    : LaunchTyped<StreamProgram>(stream, args);
}

}  // namespace

const TokenApi kTokenApi = {
    .stream = FollowStream,
    .project = LaunchTyped<ProjectProgram>,
    .store = LaunchTyped<StoreProgram>,
    .pages = LaunchTyped<PageProgram>,
    .product = LaunchTyped<ProductProgram>,
    .positions = LaunchTyped<PositionProgram>,
};

}  // namespace longview::kernels::cuda
