// Landmarks of long-short attention: pooled head by head, normalised and read with all heads side
// by side.
#pragma once

#include <algorithm>
#include <cstdint>

namespace longview::models {

struct LandmarkShape {
  int64_t heads = 1;
  int64_t ranks = 1;  // Landmarks per head.
  int64_t head_dim = 1;
};

// out [heads * head_dim] = landmark `landmark` of sequence `sequence` of pooled
// [sequences, heads * ranks, head_dim].
inline void JoinLandmark(const float* pooled, const LandmarkShape& shape, int64_t sequence,
                         int64_t landmark, float* out) {
  for (int64_t head = 0; head < shape.heads; ++head) {
    const int64_t column = (sequence * shape.heads + head) * shape.ranks + landmark;
    std::copy_n(pooled + column * shape.head_dim, shape.head_dim, out + head * shape.head_dim);
  }
}

}  // namespace longview::models
