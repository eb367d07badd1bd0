#include "kernels/span/slice_planner.h"

#include <algorithm>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

constexpr int kTokens = 0;
constexpr int kBoundary = 1;

// One sequence on its grids. The boundary source holds the e places left of slice 0, then
// the e places right of the last slice.
struct Layout {
  const SliceSequence* sequence;
  int32_t seq;
  int32_t grid;
  int32_t boundary_grid;
  int32_t slices;
};

// Row of T_k for key place p and the tile's row i: p - slice(i) * L + e.
Bias PositionBias(const SlicePattern& pattern, int32_t at) {
  Bias bias{};
  bias.kind = kDotted;
  bias.id = 0;
  bias.base = pattern.extension - at / pattern.slice * pattern.slice;
  bias.row_mul = -pattern.slice;
  bias.row_div = pattern.slice;
  bias.row_phase = at % pattern.slice;
  bias.key_mul = 1;
  return bias;
}

// Rows of one slice see all e places of the boundary that starts at `first`; its place 0 is
// sequence place `place`.
void AddBoundary(const SlicePattern& pattern, const Layout& layout, int32_t at, int32_t rows,
                 int32_t slice, int32_t first, int32_t place, PlanBuilder* builder) {
  std::vector<Interval> seen(rows, Interval{0, 0});
  for (int32_t i = 0; i < rows; ++i) {
    if ((at + i) / pattern.slice == slice) seen[i] = {first, first + pattern.extension};
  }
  Bias bias = PositionBias(pattern, at);
  bias.base += place - first;
  builder->AddKeys(kBoundary, layout.boundary_grid, seen, pattern.positions ? &bias : nullptr);
}

void AddTile(const SlicePattern& pattern, const Layout& layout, int32_t at, PlanBuilder* builder) {
  const int32_t tokens = layout.sequence->tokens;
  TileRowsOf rows;
  rows.row0 = layout.sequence->row0 + at;
  rows.rows = std::min(pattern.tile_rows, tokens - at);
  rows.seq = layout.seq;
  rows.heads = pattern.heads;
  std::vector<Interval> seen;
  for (int32_t t = at; t < at + rows.rows; ++t) {
    const int32_t slice = t / pattern.slice * pattern.slice;
    const int32_t hi = pattern.autoregressive ? t + 1 : slice + pattern.slice + pattern.extension;
    seen.push_back({std::max(0, slice - pattern.extension), std::min(tokens, hi)});
  }
  const Bias bias = PositionBias(pattern, at);
  builder->BeginTile(rows);
  if (pattern.zero_boundary) {
    AddBoundary(pattern, layout, at, rows.rows, 0, 0, -pattern.extension, builder);
  }
  builder->AddKeys(kTokens, layout.grid, seen, pattern.positions ? &bias : nullptr);
  if (pattern.zero_boundary && !pattern.autoregressive) {
    AddBoundary(pattern, layout, at, rows.rows, layout.slices - 1, pattern.extension,
                layout.slices * pattern.slice, builder);
  }
  builder->EndTile();
}

}  // namespace

Plan PlanSlices(const SlicePattern& pattern, std::span<const SliceSequence> batch) {
  KERNEL_CHECK(pattern.slice >= 1);
  KERNEL_CHECK(pattern.extension >= 0 && pattern.extension <= pattern.slice);
  PlanBuilder builder;
  builder.AddSource(0, pattern.heads);
  if (pattern.zero_boundary) builder.AddSource(0, pattern.heads);
  for (size_t s = 0; s < batch.size(); ++s) {
    const SliceSequence& sequence = batch[s];
    Layout layout{&sequence, static_cast<int32_t>(s), builder.NewGrid(kTokens), 0,
                  (sequence.tokens + pattern.slice - 1) / pattern.slice};
    builder.AddRows(kTokens, sequence.row0, 1, sequence.tokens);
    for (size_t t = 0; t < sequence.visible.size(); ++t) {
      if (sequence.visible[t] == 0) {
        builder.AddHole(kTokens, layout.grid + static_cast<int32_t>(t));
      }
    }
    if (pattern.zero_boundary) {
      layout.boundary_grid = builder.NewGrid(kBoundary);
      builder.AddRows(kBoundary, 0, 1, 2 * pattern.extension);
    }
    for (int32_t at = 0; at < sequence.tokens; at += pattern.tile_rows) {
      AddTile(pattern, layout, at, &builder);
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
