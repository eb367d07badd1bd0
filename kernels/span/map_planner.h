// Full attention over feature maps with a relative position table indexed by the 2-D offset (full
// stages of Vision Longformer and ViL-LS): never an [N, N] bias matrix.
//
// Rows of an image: [globals | map tokens, row-major]; q, k, v and out share them. The bias of two
// tokens depends on how far apart they lie. On small maps a tile is several whole map rows and
// reads a table expanded by their distance from the key row, so that keys run in whole blocks; on
// large maps, where a map row fills a block, a tile stays inside one row and one span per row of
// the key map reads the learned table.
//
// Sources: 0 globals, 1 map tokens. Tables (all Added, with `bias`): 0 [H, 2 g]: g2l[0] then
// g2l[1]; 1 [H, g * g]: g2g; 2 + t, table t of MapImage::table: [H, entries], entry e = row
// bias_rows[t][e] of the learned table for maps of that size, whose row of query minus key
// (dx, dy) is (dx + rows - 1) * (2 cols - 1) + dy + cols - 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"

namespace longview::kernels {

struct MapPattern {
  int32_t heads = 1;
  int32_t globals = 0;
  bool bias = true;
  int32_t tile_rows = 48;
};

struct MapImage {
  int32_t row0 = 0;  // Row of its first token.
  int32_t rows = 1;  // Rows of the feature map.
  int32_t cols = 1;
  int32_t table = 0;  // Numbered without gaps as images come; equal tables need equal sizes.
};

struct MapPlan {
  Plan plan;
  std::vector<std::vector<int32_t>> bias_rows;
};

MapPlan PlanMap(const MapPattern& pattern, std::span<const MapImage> batch);

}  // namespace longview::kernels
