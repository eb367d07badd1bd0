// The host's side of pooling whole segments on a device: how they are cut into pieces. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/pool/pool_api.h"

namespace longview::kernels::cuda {

struct PoolSegment {
  int32_t begin = 0;
  int32_t end = 0;
};

struct PoolPiecePlan {
  std::vector<PoolPiece> pieces;
  std::vector<int32_t> piece0 = {0};  // [segments + 1]
};

// Pieces of kPoolPiece tokens, the last of a segment as short as it is; none of an empty segment.
PoolPiecePlan CutPieces(std::span<const PoolSegment> segments);

}  // namespace longview::kernels::cuda
