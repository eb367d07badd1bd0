#include "kernels/span/paged_planner.h"

#include <algorithm>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

struct Sources {
  int pages = -1;
  int cached = -1;
  int fresh = -1;
};

// Entry t - p with p counted from position `origin`.
Bias DistanceBias(int32_t table, int32_t first_position, int32_t origin) {
  Bias bias{};
  bias.kind = kDotted;
  bias.id = table;
  bias.base = first_position - origin;
  bias.row_mul = 1;
  bias.row_div = 1;
  bias.key_mul = -1;
  return bias;
}

// Entry rank * (t / segment) - 1 - j.
Bias PageBias(const PagedPattern& pattern, int32_t first_position) {
  Bias bias{};
  bias.kind = kDotted;
  bias.id = pattern.page_table;
  bias.base = first_position / pattern.segment * pattern.rank - 1;
  bias.row_mul = pattern.rank;
  bias.row_div = pattern.segment;
  bias.row_phase = first_position % pattern.segment;
  bias.key_mul = -1;
  return bias;
}

void AddTile(const PagedPattern& pattern, const PagedSequence& sequence, const Sources& sources,
             int32_t seq, int32_t at, int32_t fresh_grid, PlanBuilder* builder) {
  TileRowsOf rows;
  rows.row0 = sequence.query_row0 + at;
  rows.rows = std::min(pattern.tile_rows, sequence.tokens - at);
  rows.seq = seq;
  rows.heads = pattern.heads;
  const int32_t first = sequence.start + at;
  const int32_t origin = sequence.first_block * kBlockSlots;
  // Positions from `start` on lie in the cache too when there are no fresh rows.
  const int32_t cached_end = pattern.fresh ? sequence.start : sequence.start + sequence.tokens;
  std::vector<Interval> pages;
  std::vector<Interval> cached;
  std::vector<Interval> fresh;
  for (int32_t t = first; t < first + rows.rows; ++t) {
    const int32_t lo = pattern.window == 0 ? 0 : std::max(0, t - pattern.window + 1);
    pages.push_back({0, pattern.rank * (t / pattern.segment)});
    cached.push_back({lo - origin, std::min(t + 1, cached_end) - origin});
    KERNEL_CHECK(cached.back().lo >= 0 || cached.back().lo >= cached.back().hi);
    fresh.push_back({std::max(0, lo - sequence.start), t + 1 - sequence.start});
  }
  // A row sums its keys in the order of spans: pages, cached keys, fresh keys, in every tile.
  builder->BeginTile(rows);
  if (sources.pages >= 0) {
    const Bias bias = PageBias(pattern, first);
    builder->AddKeys(sources.pages, 0, pages, pattern.page_table < 0 ? nullptr : &bias,
                     Split::kSplit);
  }
  const bool biased = pattern.window_table >= 0;
  const Bias cached_bias = DistanceBias(pattern.window_table, first, origin);
  builder->AddKeys(sources.cached, 0, cached, biased ? &cached_bias : nullptr);
  if (sources.fresh >= 0) {
    const Bias fresh_bias = DistanceBias(pattern.window_table, first, sequence.start);
    builder->AddKeys(sources.fresh, fresh_grid, fresh, biased ? &fresh_bias : nullptr);
  }
  builder->EndTile();
}

}  // namespace

Plan PlanPaged(const PagedPattern& pattern, std::span<const PagedSequence> batch) {
  KERNEL_CHECK(pattern.segment >= 1 && pattern.rank >= 0 && pattern.window >= 0);
  PlanBuilder builder;
  Sources sources;
  if (pattern.rank > 0) sources.pages = builder.AddSource(0, pattern.heads);
  sources.cached = builder.AddSource(0, pattern.heads);
  if (pattern.fresh) sources.fresh = builder.AddSource(0, pattern.heads);
  for (size_t s = 0; s < batch.size(); ++s) {
    const PagedSequence& sequence = batch[s];
    int32_t fresh_grid = 0;
    if (pattern.fresh) {
      KERNEL_CHECK(sequence.start % kBlockSlots == 0);
      fresh_grid = builder.NewGrid(sources.fresh);
      builder.AddRows(sources.fresh, sequence.fresh_row0, 1, sequence.tokens);
    }
    for (int32_t at = 0; at < sequence.tokens; at += pattern.tile_rows) {
      AddTile(pattern, sequence, sources, static_cast<int32_t>(s), at, fresh_grid, &builder);
    }
  }
  return builder.Finish();
}

}  // namespace longview::kernels
