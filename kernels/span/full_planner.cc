#include "kernels/span/full_planner.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

// The keys of a sequence that its rows at .. at + rows - 1 see.
std::vector<Interval> Seen(const FullPattern& pattern, const FullSequence& sequence, int32_t at,
                           int32_t rows) {
  std::vector<Interval> seen(rows, Interval{0, sequence.keys});
  for (int32_t i = 0; pattern.causal && i < rows; ++i) {
    const int32_t last = at + i + sequence.keys - sequence.queries + pattern.causal_lead;
    seen[i].hi = std::clamp(last + 1, 0, sequence.keys);
  }
  return seen;
}

}  // namespace

Plan PlanFull(const FullPattern& pattern, std::span<const FullSequence> batch) {
  PlanBuilder builder;
  const int own_source = pattern.own_keys ? builder.AddSource(0, pattern.heads) : -1;
  const int source = builder.AddSource(0, pattern.heads);
  const Split split = pattern.split ? Split::kSplit : Split::kNo;
  for (size_t s = 0; s < batch.size(); ++s) {
    const FullSequence& sequence = batch[s];
    if (sequence.queries == 0) continue;
    KERNEL_CHECK(sequence.visible.empty() ||
                 sequence.visible.size() == static_cast<size_t>(sequence.keys));
    const int32_t own_grid = pattern.own_keys ? builder.NewGrid(own_source) : 0;
    if (pattern.own_keys) builder.AddRows(own_source, sequence.own_row0, 1, sequence.own);
    const int32_t grid = builder.NewGrid(source);
    builder.AddRows(source, sequence.key_row0, 1, sequence.keys);
    for (size_t j = 0; j < sequence.visible.size(); ++j) {
      if (sequence.visible[j] == 0) builder.AddHole(source, grid + static_cast<int32_t>(j));
    }
    for (int32_t at = 0; at < sequence.queries; at += pattern.tile_rows) {
      TileRowsOf rows;
      rows.row0 = sequence.query_row0 + at;
      rows.rows = std::min(pattern.tile_rows, sequence.queries - at);
      rows.seq = static_cast<int32_t>(s);
      rows.heads = pattern.heads;
      builder.BeginTile(rows);
      if (pattern.own_keys) builder.AddAllKeys(own_source, own_grid, 0, sequence.own);
      builder.AddKeys(source, grid, Seen(pattern, sequence, at, rows.rows), nullptr, split);
      builder.EndTile();
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
