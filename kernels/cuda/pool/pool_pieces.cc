#include "kernels/cuda/pool/pool_pieces.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace longview::kernels::cuda {

PoolPiecePlan CutPieces(std::span<const PoolSegment> segments) {
  PoolPiecePlan plan;
  for (size_t i = 0; i < segments.size(); ++i) {
    KERNEL_CHECK(segments[i].begin <= segments[i].end);
    for (int32_t begin = segments[i].begin; begin < segments[i].end; begin += kPoolPiece) {
      plan.pieces.push_back(
          {static_cast<int32_t>(i), begin, std::min(begin + kPoolPiece, segments[i].end)});
    }
    plan.piece0.push_back(static_cast<int32_t>(plan.pieces.size()));
  }
  return plan;
}

}  // namespace longview::kernels::cuda
