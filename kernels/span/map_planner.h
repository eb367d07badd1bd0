// Full attention over a feature map with a relative position table indexed by the 2-D offset
// (full stages of Vision Longformer and ViL-LS): never an [N, N] bias matrix.
//
// Rows of an image: [globals | map tokens, row-major]; q, k, v and out share them. One span
// per row of the key map, and a query tile stays inside one row, so the table is read by
// strides.
//
// Sources: 0 globals, 1 map tokens. Tables (all Added, with `bias`): 0 the learned table
// [H, (2 rows - 1) * (2 cols - 1)] of the one map size; 1 [H, 2 g]: g2l[0] then g2l[1]; 2
// [H, g * g]: g2g.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct MapPattern {
  int32_t heads = 1;
  int32_t globals = 0;
  int32_t rows = 1;
  int32_t cols = 1;
  bool bias = true;
  int32_t tile_rows = 48;
};

// One image per entry of `row0`: the row of its first token.
Plan PlanMap(const MapPattern& pattern, std::span<const int32_t> row0);

}  // namespace longview::kernels
