#include "kernels/span/paged_slice_planner.h"

#include <algorithm>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

struct Sources {
  int boundary = -1;
  int cached = -1;
  int fresh = -1;
};

// Row of T_k for key j of a grid that begins at position `origin`, for rows from position `first`
// on: origin + j - slice * L + e.
Bias PositionBias(const SlicePattern& pattern, int32_t first, int32_t origin) {
  Bias bias{};
  bias.kind = kDotted;
  bias.id = 0;
  bias.base = origin - first / pattern.slice * pattern.slice + pattern.extension;
  bias.row_mul = -pattern.slice;
  bias.row_div = pattern.slice;
  bias.row_phase = first % pattern.slice;
  bias.key_mul = 1;
  return bias;
}

struct Grids {
  int32_t boundary = 0;
  int32_t fresh = 0;
};

void AddTile(const SlicePattern& pattern, const PagedSequence& sequence, const Sources& sources,
             const Grids& grids, int32_t seq, int32_t at, PlanBuilder* builder) {
  TileRowsOf rows;
  rows.row0 = sequence.query_row0 + at;
  rows.rows = std::min(pattern.tile_rows, sequence.tokens - at);
  rows.seq = seq;
  rows.heads = pattern.heads;
  const int32_t first = sequence.start + at;
  const int32_t origin = sequence.first_block * kBlockSlots;
  const bool fresh_rows = sources.fresh >= 0;
  const int32_t cached_end = fresh_rows ? sequence.start : sequence.start + sequence.tokens;
  std::vector<Interval> boundary, cached, fresh;
  for (int32_t t = first; t < first + rows.rows; ++t) {
    const int32_t lo = std::max(0, t / pattern.slice * pattern.slice - pattern.extension);
    boundary.push_back({0, t < pattern.slice ? pattern.extension : 0});
    cached.push_back({lo - origin, std::min(t + 1, cached_end) - origin});
    KERNEL_CHECK(cached.back().lo >= 0 || cached.back().lo >= cached.back().hi);
    fresh.push_back({std::max(0, lo - sequence.start), t + 1 - sequence.start});
  }
  const auto add = [&](int source, int32_t grid, std::span<const Interval> seen, int32_t begins) {
    if (source < 0) return;
    const Bias bias = PositionBias(pattern, first, begins);
    builder->AddKeys(source, grid, seen, pattern.positions ? &bias : nullptr);
  };
  builder->BeginTile(rows);
  add(sources.boundary, grids.boundary, boundary, -pattern.extension);
  add(sources.cached, 0, cached, origin);
  add(sources.fresh, grids.fresh, fresh, sequence.start);
  builder->EndTile();
}

}  // namespace

Plan PlanPagedSlices(const SlicePattern& pattern, bool fresh,
                     std::span<const PagedSequence> batch) {
  KERNEL_CHECK(pattern.autoregressive && pattern.slice >= 1);
  KERNEL_CHECK(pattern.extension >= 0 && pattern.extension <= pattern.slice);
  PlanBuilder builder;
  Sources sources;
  const bool zeros = pattern.zero_boundary && pattern.extension > 0;
  if (zeros) sources.boundary = builder.AddSource(0, pattern.heads);
  sources.cached = builder.AddSource(0, pattern.heads);
  if (fresh) sources.fresh = builder.AddSource(0, pattern.heads);
  for (size_t s = 0; s < batch.size(); ++s) {
    const PagedSequence& sequence = batch[s];
    Grids grids;
    if (zeros) {
      grids.boundary = builder.NewGrid(sources.boundary);
      builder.AddRows(sources.boundary, 0, 1, pattern.extension);
    }
    if (fresh) {
      KERNEL_CHECK(sequence.start % kBlockSlots == 0);
      grids.fresh = builder.NewGrid(sources.fresh);
      builder.AddRows(sources.fresh, sequence.fresh_row0, 1, sequence.tokens);
    }
    for (int32_t at = 0; at < sequence.tokens; at += pattern.tile_rows) {
      AddTile(pattern, sequence, sources, grids, static_cast<int32_t>(s), at, &builder);
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
