#include "kernels/span/map_planner.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

constexpr int kGlobals = 0;
constexpr int kMap = 1;

struct Grids {
  int32_t globals;
  int32_t map;
};

TileRowsOf RowsAt(const MapPattern& pattern, int32_t row, int32_t rows, int32_t seq) {
  return {.row0 = row, .rows = rows, .seq = seq, .heads = pattern.heads};
}

void AddGlobalTiles(const MapPattern& pattern, const Grids& grids, int32_t row0, int32_t seq,
                    PlanBuilder* builder) {
  const int32_t g = pattern.globals;
  for (int32_t at = 0; at < g; at += pattern.tile_rows) {
    const Bias among{kAdded, 2, at * g, g, 1, 0, 1};
    const Bias to_map{kAdded, 1, at, 1, 1, 0, 0};
    builder->BeginTile(RowsAt(pattern, row0 + at, std::min(pattern.tile_rows, g - at), seq));
    builder->AddAllKeys(kGlobals, grids.globals, 0, g, pattern.bias ? &among : nullptr);
    builder->AddAllKeys(kMap, grids.map, 0, pattern.rows * pattern.cols,
                        pattern.bias ? &to_map : nullptr);
    builder->EndTile();
  }
}

// Queries (x, y .. y + rows - 1).
void AddMapTile(const MapPattern& pattern, const Grids& grids, int32_t row0, int32_t x, int32_t y,
                int32_t seq, PlanBuilder* builder) {
  const int32_t cols = pattern.cols;
  const int32_t rows = std::min(pattern.tile_rows, cols - y);
  const Bias to_global{kAdded, 1, pattern.globals, 0, 1, 0, 1};
  builder->BeginTile(RowsAt(pattern, row0 + pattern.globals + x * cols + y, rows, seq));
  builder->AddAllKeys(kGlobals, grids.globals, 0, pattern.globals,
                      pattern.bias ? &to_global : nullptr);
  for (int32_t key_x = 0; key_x < pattern.rows; ++key_x) {
    const int32_t first = key_x * cols;
    const int32_t entry = (x - key_x + pattern.rows - 1) * (2 * cols - 1) + y + cols - 1;
    const Bias bias{kAdded, 0, entry + first, 1, 1, 0, -1};
    builder->AddAllKeys(kMap, grids.map, first, first + cols, &bias);
  }
  builder->EndTile();
}

}  // namespace

Plan PlanMap(const MapPattern& pattern, std::span<const int32_t> row0) {
  KERNEL_CHECK(pattern.rows >= 1 && pattern.cols >= 1 && pattern.globals >= 0);
  PlanBuilder builder;
  builder.AddSource(0, pattern.heads);
  builder.AddSource(0, pattern.heads);
  const int32_t tokens = pattern.rows * pattern.cols;
  for (size_t s = 0; s < row0.size(); ++s) {
    const int32_t seq = static_cast<int32_t>(s);
    const Grids grids{builder.NewGrid(kGlobals), builder.NewGrid(kMap)};
    builder.AddRows(kGlobals, row0[s], 1, pattern.globals);
    builder.AddRows(kMap, row0[s] + pattern.globals, 1, tokens);
    AddGlobalTiles(pattern, grids, row0[s], seq, &builder);
    for (int32_t at = 0; !pattern.bias && at < tokens; at += pattern.tile_rows) {
      builder.BeginTile(RowsAt(pattern, row0[s] + pattern.globals + at,
                               std::min(pattern.tile_rows, tokens - at), seq));
      builder.AddAllKeys(kGlobals, grids.globals, 0, pattern.globals);
      builder.AddAllKeys(kMap, grids.map, 0, tokens);
      builder.EndTile();
    }
    for (int32_t x = 0; pattern.bias && x < pattern.rows; ++x) {
      for (int32_t y = 0; y < pattern.cols; y += pattern.tile_rows) {
        AddMapTile(pattern, grids, row0[s], x, y, seq, &builder);
      }
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
