#include "kernels/span/schedule_planner.h"

#include <algorithm>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

enum SourceIndex { kConstantSegments, kEarly, kLate, kConstantWindow, kTokens, kSources };
constexpr int kWindowTable = 0;
constexpr int kSegmentTable = 1;

using Grids = int32_t[kSources];

// Entry r * (t / l) - 1 - j for segment keys counted from segment 0.
Bias SegmentBias(const SchedulePattern& pattern, int32_t first) {
  return {kDotted,
          kSegmentTable,
          first / pattern.segment * pattern.rank - 1,
          pattern.rank,
          pattern.segment,
          first % pattern.segment,
          -1};
}

// A tile never crosses a multiple of B, so its rows share S and c0.
void AddTile(const SchedulePattern& pattern, const ScheduleSequence& sequence, int32_t seq,
             int32_t at, int32_t count, const Grids& grids, PlanBuilder* builder) {
  TileRowsOf tile;
  tile.row0 = sequence.row0 + at;
  tile.rows = count;
  tile.seq = seq;
  tile.heads = pattern.heads;
  const int32_t rank = pattern.rank;
  const int32_t memory = pattern.memory / pattern.segment;  // Segments.
  const int32_t current = at / pattern.block * pattern.block / pattern.segment;
  const int32_t oldest = current - memory;
  const int32_t before = pattern.window - 1;  // Constant places in front of the text.
  std::vector<Interval> late;
  std::vector<Interval> constant;
  std::vector<Interval> window;
  for (int32_t t = at; t < at + count; ++t) {
    late.push_back({current * rank, t / pattern.segment * rank});
    const int32_t lo = t - pattern.window + 1;
    constant.push_back(lo < 0 ? Interval{lo + before, before} : Interval{0, 0});
    window.push_back({std::max(0, lo), t + 1});
  }
  Bias segments = SegmentBias(pattern, at);
  // Constant keys are counted from the oldest segment that any token sees, -memory.
  Bias constants = segments;
  constants.base += memory * rank;
  Bias distance{kDotted, kWindowTable, at, 1, 1, 0, -1};
  Bias constant_distance = distance;
  constant_distance.base += before;
  builder->BeginTile(tile);
  builder->AddAllKeys(kConstantSegments, grids[kConstantSegments],
                      (std::min(oldest, 0) + memory) * rank, memory * rank, &constants,
                      Split::kSplit);
  builder->AddAllKeys(kEarly, grids[kEarly], std::max(oldest, 0) * rank, current * rank, &segments,
                      Split::kSplit);
  builder->AddKeys(kLate, grids[kLate], late, &segments, Split::kSplit);
  builder->AddKeys(kConstantWindow, grids[kConstantWindow], constant, &constant_distance);
  builder->AddKeys(kTokens, grids[kTokens], window, &distance);
  builder->EndTile();
}

}  // namespace

Plan PlanSchedule(const SchedulePattern& pattern, std::span<const ScheduleSequence> batch) {
  KERNEL_CHECK(pattern.window >= 1 && pattern.segment >= 1 && pattern.rank >= 1);
  KERNEL_CHECK(pattern.block >= 1 && pattern.block % pattern.segment == 0);
  KERNEL_CHECK(pattern.memory >= 0 && pattern.memory % pattern.segment == 0);
  PlanBuilder builder;
  for (int i = 0; i < kSources; ++i) builder.AddSource(0, pattern.heads);
  const int32_t memory = pattern.memory / pattern.segment;
  builder.AddRows(kConstantSegments, 0, 0, memory * pattern.rank);
  builder.AddRows(kConstantWindow, 0, 0, pattern.window - 1);
  for (size_t s = 0; s < batch.size(); ++s) {
    const ScheduleSequence& sequence = batch[s];
    const int32_t segments = sequence.tokens / pattern.segment * pattern.rank;
    const Grids grids = {0, builder.NewGrid(kEarly), builder.NewGrid(kLate), 0,
                         builder.NewGrid(kTokens)};
    builder.AddRows(kEarly, sequence.early_row0, 1, segments);
    builder.AddRows(kLate, sequence.late_row0, 1, segments);
    builder.AddRows(kTokens, sequence.row0, 1, sequence.tokens);
    for (int32_t at = 0; at < sequence.tokens;) {
      const int32_t border = (at / pattern.block + 1) * pattern.block;
      const int32_t count = std::min({pattern.tile_rows, sequence.tokens - at, border - at});
      AddTile(pattern, sequence, static_cast<int32_t>(s), at, count, grids, &builder);
      at += count;
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
