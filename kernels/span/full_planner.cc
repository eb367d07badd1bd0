#include "kernels/span/full_planner.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {

Plan PlanFull(const FullPattern& pattern, std::span<const FullSequence> batch) {
  PlanBuilder builder;
  const int source = builder.AddSource(0, pattern.heads);
  for (size_t s = 0; s < batch.size(); ++s) {
    const FullSequence& sequence = batch[s];
    if (sequence.queries == 0) continue;
    KERNEL_CHECK(sequence.visible.empty() ||
                 sequence.visible.size() == static_cast<size_t>(sequence.keys));
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
      builder.BeginTile(rows, pattern.split);
      std::vector<Interval> seen(rows.rows, Interval{0, sequence.keys});
      for (int32_t i = 0; pattern.causal && i < rows.rows; ++i) {
        seen[i].hi = std::max(0, at + i + 1 + sequence.keys - sequence.queries);
      }
      builder.AddKeys(source, grid, seen);
      builder.EndTile();
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
