// Long-short attention on feature maps (Transformer-LS vision: ViL-LS, CvT-LS): a token sees
// the class token(s), the projected keys of its image, and the w x w group it lies in, widened
// by `extension` on every side and clipped at the border.
//
// Rows of an image: [class tokens | local tokens in ChunkMap order]; only local rows are
// computed. The class row is a second call (PlanFull): with own_keys over the first call's
// outputs, or over all tokens.
//
// Sources: 0 class tokens, 1 projected keys, 2 local tokens: every group's window is gathered
// into a run of its own, so a neighbourhood of three chunks is one run of keys.
// Table t (Added, with `bias`) of WindowImage::table: [H, entries], entry e = learned table row
// bias_rows[t][e].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct WindowGridPattern {
  int32_t heads = 1;
  int32_t window = 0;     // w; 0: no window.
  int32_t extension = 0;  // max(w / 2, 1) in the published models.
  int32_t class_tokens = 0;
  // ViL-LS: row u * (w + 2 * (w / 2)) + v of the learned table, whose multiplier aliases
  // different offsets; for w = 1 row 0 for every key.
  bool bias = false;
  int32_t tile_rows = 48;
};

struct WindowImage {
  int32_t row0 = 0;
  int32_t rows = 1;  // Rows of the feature map.
  int32_t cols = 1;
  int32_t projected_row0 = 0;
  int32_t projected = 0;
  int32_t table = 0;  // Numbered without gaps as images come. Images of one size may share theirs.
  // Rows of groups whose tokens are queries: a slice of a map that comes with its neighbours. Bias
  // tables are those of the whole.
  int32_t group0 = 0;
  int32_t groups = INT32_MAX;
};

struct WindowGridPlan {
  Plan plan;
  // By table; what one holds is a function of its images' sizes.
  std::vector<std::vector<int32_t>> bias_rows;
};

WindowGridPlan PlanWindowGrid(const WindowGridPattern& pattern, std::span<const WindowImage> batch);

}  // namespace longview::kernels
