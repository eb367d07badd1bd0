// Plans of long-short attention over feature maps (Zhu et al. 2021, section 4.3; the
// published imagenet/ code), for a ragged batch of images.
//
// Rows of an image: [class tokens | map tokens, window by window as kernels::ChunkMap orders them].
// A map token sees the class tokens, the landmarks of its image and the w x w window it lies in,
// widened by max(w / 2, 1) on every side. A class row is a second call.
//
//   P    = softmax over the map's tokens of scores     per head and landmark, class rows left out
//   K'   = LN(P k),  V' = LN(P v)                      all heads of a landmark together
//   o    = softmax over [class keys | K' | window of k] of q, times values
//   o_c  = the same over [its own key | outputs o, or all keys of the map] for class rows
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"
#include "kernels/span/window_grid_planner.h"

namespace longview::models {

// One stage's attention. Plain data.
struct LongShortPattern {
  int heads = 1;
  int width = 0;   // C, of all heads.
  int ranks = 0;   // r landmarks per head; 0: none.
  int window = 0;  // w; 0: none.
  int class_tokens = 0;
  bool bias = false;  // Relative, of window keys.
  // A class row sees, beside its own key, the outputs of the map's tokens, or their keys.
  bool class_sees_outputs = true;
  float scale = 1;

  int head_dim() const { return width / heads; }
  int columns() const {
    return heads * ranks;
  }  // Columns of the projection's scores, head by head.
};

struct LongShortPlan {
  // Every map token. Sources: 0 class tokens, 1 landmarks, 2 map tokens; table t per map size.
  kernels::Plan tokens;
  // The class rows. Sources: 0 their own keys, 1 what they see of the map.
  kernels::Plan class_rows;
  std::vector<std::vector<int32_t>> bias_rows;  // Biases by row, see WindowGridPlan.
  std::vector<int32_t> offsets = {0};           // Image i is rows [offsets[i], offsets[i + 1]).
  std::vector<uint8_t> in_map;                  // By row: 0 for class rows.

  int64_t images() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t rows() const { return offsets.back(); }
};

// `images` without their landmarks, which are placed here: image i has rows i * r and on. Rows
// follow each other without gaps.
LongShortPlan PlanLongShort(const LongShortPattern& pattern,
                            std::span<const kernels::WindowImage> images, int tile_rows);

// Bytes of its arrays.
size_t BytesOf(const LongShortPlan& plan);

}  // namespace longview::models
