#include "kernels/span/segment_planner.h"

#include <algorithm>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

struct Grids {
  int32_t projected;
  int32_t tokens;
};

void AddTile(const SegmentPattern& pattern, const SegmentSequence& sequence, int32_t seq,
             int32_t at, const Grids& grids, PlanBuilder* builder) {
  TileRowsOf rows;
  rows.row0 = sequence.row0 + at;
  rows.rows = std::min(pattern.tile_rows, sequence.tokens - at);
  rows.seq = seq;
  rows.heads = pattern.heads;
  std::vector<Interval> projected;
  std::vector<Interval> window;
  for (int32_t t = at; t < at + rows.rows; ++t) {
    const bool masked = !sequence.visible.empty() && sequence.visible[t] == 0;
    projected.push_back({0, masked ? 0 : sequence.projected});
    if (masked || pattern.window == 0) {
      window.push_back({0, 0});
      continue;
    }
    const int32_t group = t / pattern.window * pattern.window;
    window.push_back({std::max(0, group - pattern.extension),
                      std::min(sequence.tokens, group + pattern.window + pattern.extension)});
  }
  builder->BeginTile(rows);
  builder->AddKeys(0, grids.projected, projected);
  builder->AddKeys(1, grids.tokens, window);
  builder->EndTile();
}

}  // namespace

Plan PlanSegments(const SegmentPattern& pattern, std::span<const SegmentSequence> batch) {
  KERNEL_CHECK(pattern.window >= 0 && pattern.extension >= 0);
  PlanBuilder builder;
  builder.AddSource(0, pattern.heads);
  builder.AddSource(0, pattern.heads);
  for (size_t s = 0; s < batch.size(); ++s) {
    const SegmentSequence& sequence = batch[s];
    const Grids grids{builder.NewGrid(0), builder.NewGrid(1)};
    builder.AddRows(0, sequence.projected_row0, 1, sequence.projected);
    builder.AddRows(1, sequence.row0, 1, sequence.tokens);
    for (size_t t = 0; t < sequence.visible.size(); ++t) {
      if (sequence.visible[t] == 0) builder.AddHole(1, grids.tokens + static_cast<int32_t>(t));
    }
    for (int32_t at = 0; at < sequence.tokens; at += pattern.tile_rows) {
      AddTile(pattern, sequence, static_cast<int32_t>(s), at, grids, &builder);
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
