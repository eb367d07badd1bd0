#include "kernels/span/schedule_planner.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/span/paged_planner.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

class BlocksPlanner {
 public:
  BlocksPlanner(const SchedulePattern& pattern, bool fresh, int tile_rows)
      : pattern_(pattern),
        fresh_(fresh),
        tile_rows_(tile_rows),
        memory_(pattern.memory / pattern.segment) {
    KERNEL_CHECK(pattern.block % pattern.segment == 0 && pattern.memory % pattern.segment == 0);
    for (const ScheduleSource source : pattern.Sources(fresh)) {
      index_[static_cast<int>(source)] = builder_.AddSource(0, pattern.heads);
    }
  }

  void AddRun(const ScheduleRun& run, int32_t seq) {
    int32_t grid = 0;
    if (fresh_) {
      KERNEL_CHECK(run.start % kBlockSlots == 0);
      grid = builder_.NewGrid(Index(ScheduleSource::kFresh));
      builder_.AddRows(Index(ScheduleSource::kFresh), run.row0, 1, run.tokens);
    }
    for (int32_t at = 0; at < run.tokens;) {
      // The rows of a tile share S and c0.
      const int32_t border = ((run.start + at) / pattern_.block + 1) * pattern_.block - run.start;
      const int32_t count = std::min({tile_rows_, run.tokens - at, border - at});
      TileRowsOf rows;
      rows.row0 = run.row0 + at;
      rows.rows = count;
      rows.seq = seq;
      rows.heads = pattern_.heads;
      builder_.BeginTile(rows);
      AddSegments(run.start + at, count);
      AddWindow(run, run.start + at, count, grid);
      builder_.EndTile();
      at += count;
    }
  }

  Plan Finish() { return builder_.Finish(); }

 private:
  int Index(ScheduleSource source) const { return index_[static_cast<int>(source)]; }

  void AddSegments(int32_t t0, int32_t count) {
    const int32_t rank = pattern_.rank, segment = pattern_.segment;
    const int32_t current = t0 / pattern_.block * pattern_.block / segment;
    const int32_t oldest = current - memory_;
    const Bias bias{kDotted, kSegmentTable, t0 / segment * rank - 1, rank, segment, t0 % segment,
                    -1};
    if (pattern_.zero_memory) {
      // Counted from the oldest segment that any token sees, -memory_.
      Bias constant = bias;
      constant.base += memory_ * rank;
      builder_.AddAllKeys(Index(ScheduleSource::kConstantSegments), 0,
                          (std::min(oldest, 0) + memory_) * rank, memory_ * rank, &constant,
                          Split::kSplit);
    }
    builder_.AddAllKeys(Index(ScheduleSource::kEarly), 0, std::max(oldest, 0) * rank,
                        current * rank, &bias, Split::kSplit);
    seen_.clear();
    for (int32_t t = t0; t < t0 + count; ++t) {
      seen_.push_back({current * rank, t / segment * rank});
    }
    builder_.AddKeys(Index(ScheduleSource::kLate), 0, seen_, &bias, Split::kSplit);
  }

  void AddWindow(const ScheduleRun& run, int32_t t0, int32_t count, int32_t grid) {
    const int32_t before = pattern_.window - 1;  // Constant places in front of the text.
    const int32_t cached_end = fresh_ ? run.start : run.start + run.tokens;
    Bias bias{kDotted, kWindowTable, t0, 1, 1, 0, -1};
    const auto add = [&](ScheduleSource source, int32_t origin, auto interval) {
      seen_.clear();
      for (int32_t t = t0; t < t0 + count; ++t) {
        seen_.push_back(interval(t, std::max(0, t - before)));
      }
      builder_.AddKeys(Index(source), origin, seen_, &bias);
    };
    if (pattern_.zero_memory) {
      bias.base = t0 + before;
      add(ScheduleSource::kConstantWindow, 0, [&](int32_t t, int32_t) {
        return t < before ? Interval{t, before} : Interval{0, 0};
      });
      bias.base = t0;
    }
    add(ScheduleSource::kCached, 0, [&](int32_t t, int32_t lo) {
      return Interval{lo, std::min(t + 1, cached_end)};
    });
    if (!fresh_) return;
    bias.base = t0 - run.start;
    add(ScheduleSource::kFresh, grid, [&](int32_t t, int32_t lo) {
      return Interval{std::max(0, lo - run.start), t + 1 - run.start};
    });
  }

  const SchedulePattern& pattern_;
  const bool fresh_;
  const int32_t tile_rows_;
  const int32_t memory_;  // Segments.
  int index_[6] = {};
  PlanBuilder builder_;
  std::vector<Interval> seen_;
};

Plan PlanPaper(const SchedulePattern& pattern, bool fresh, std::span<const ScheduleRun> runs,
               int tile_rows) {
  PagedPattern paged;
  paged.heads = pattern.heads;
  paged.window = pattern.window;
  paged.segment = pattern.segment;
  paged.rank = pattern.rank;
  paged.fresh = fresh;
  paged.window_table = kWindowTable;
  paged.page_table = kSegmentTable;
  paged.tile_rows = tile_rows;
  std::vector<PagedSequence> batch;
  for (const ScheduleRun& run : runs) {
    PagedSequence& sequence = batch.emplace_back();
    sequence.query_row0 = sequence.fresh_row0 = run.row0;
    sequence.tokens = run.tokens;
    sequence.start = run.start;
  }
  return PlanPaged(paged, batch);
}

}  // namespace

ScheduleSources SchedulePattern::Sources(bool fresh) const {
  ScheduleSources sources;
  if (zero_memory) sources.Add(ScheduleSource::kConstantSegments);
  if (!paper()) sources.Add(ScheduleSource::kEarly);
  sources.Add(ScheduleSource::kLate);
  if (zero_memory) sources.Add(ScheduleSource::kConstantWindow);
  sources.Add(ScheduleSource::kCached);
  if (fresh) sources.Add(ScheduleSource::kFresh);
  return sources;
}

int64_t SchedulePattern::SegmentIds(int64_t t) const {
  const int64_t finished = t / segment;
  if (paper()) return finished * rank;
  const int64_t oldest = (t / block * block - memory) / segment;
  return (finished - (zero_memory ? oldest : std::max<int64_t>(oldest, 0))) * rank;
}

int64_t SchedulePattern::MostSegmentIds(int64_t tokens) const {
  if (tokens <= 0) return 0;
  const int64_t last = SegmentIds(tokens - 1);
  if (paper()) return last;
  // The last tokens of a block see most, as long as nothing is dropped.
  const int64_t whole = tokens / block * block;
  return whole == 0 ? last : std::max(last, SegmentIds(whole - 1));
}

int64_t SchedulePattern::VisibleKeys(int64_t t) const {
  return (zero_memory ? window : std::min<int64_t>(t + 1, window)) + SegmentIds(t);
}

Plan PlanSchedule(const SchedulePattern& pattern, bool fresh, std::span<const ScheduleRun> runs,
                  int tile_rows) {
  KERNEL_CHECK(pattern.window >= 1 && pattern.segment >= 1 && pattern.rank >= 1);
  if (pattern.paper()) return PlanPaper(pattern, fresh, runs, tile_rows);
  BlocksPlanner planner(pattern, fresh, tile_rows);
  for (size_t i = 0; i < runs.size(); ++i) planner.AddRun(runs[i], static_cast<int32_t>(i));
  return planner.Finish();
}

void ReadScores(int32_t row0, int64_t window, int64_t segments, Plan& plan) {
  for (const Tile& tile : plan.tiles) {
    KERNEL_CHECK(tile.rows == 1);
    const int64_t run = tile.row0 - row0;
    for (int32_t s = tile.span0; s < tile.span0 + tile.spans; ++s) {
      Bias& bias = plan.biases[plan.spans[s].bias];
      bias.kind = kAdded;
      bias.base += static_cast<int32_t>(run * (bias.id == kWindowTable ? window : segments));
    }
  }
}

}  // namespace longview::kernels
