#include "kernels/cuda/pool/pool.cuh"

#include "kernels/cuda/pool/pool_programs.h"
#include "kernels/cuda/program.cuh"

namespace longview::kernels::cuda {
namespace {

Status Pieces(Stream* stream, const PoolPieces& args) {
  return args.rows.dtype == DType::kFloat32 ? Launch<PoolPiecesProgram<float>>(stream, args)
                                            : Launch<PoolPiecesProgram<BFloat16>>(stream, args);
}

Status Merge(Stream* stream, const PoolMerge& args) {
  return Launch<PoolMergeProgram>(stream, args);
}

Status Append(Stream* stream, const PoolAppend& args) {
  return args.rows.dtype == DType::kFloat32 ? Launch<PoolAppendProgram<float>>(stream, args)
                                            : Launch<PoolAppendProgram<BFloat16>>(stream, args);
}

}  // namespace

const PoolApi kPoolApi = {.pieces = Pieces, .merge = Merge, .append = Append};

}  // namespace longview::kernels::cuda
