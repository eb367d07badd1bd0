#include "models/transformer_ls/attention_plan.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/span/paged_planner.h"
#include "kernels/span/plan_builder.h"

namespace longview::models {
namespace {

using kernels::Bias;
using kernels::Interval;
using kernels::Split;

// Plans of the published code's schedule over cached state; kernels::PlanSchedule is the same for
// a text read in one go.
class BlocksPlanner {
 public:
  BlocksPlanner(const LsLmConfig& config, bool fresh, int tile_rows)
      : config_(config),
        fresh_(fresh),
        tile_rows_(tile_rows),
        memory_(config.memory / config.segment) {
    for (const LsSource source : LsSources(config, fresh)) {
      index_[static_cast<int>(source)] = builder_.AddSource(0, config.heads);
    }
  }

  void AddRun(const LsQueryRun& run, int32_t seq) {
    int32_t grid = 0;
    if (fresh_) {
      grid = builder_.NewGrid(Index(LsSource::kFresh));
      builder_.AddRows(Index(LsSource::kFresh), run.row0, 1, run.tokens);
    }
    for (int32_t at = 0; at < run.tokens;) {
      // The rows of a tile share S and c0.
      const int32_t border = ((run.start + at) / config_.block + 1) * config_.block - run.start;
      const int32_t count = std::min({tile_rows_, run.tokens - at, border - at});
      kernels::TileRowsOf rows;
      rows.row0 = run.row0 + at;
      rows.rows = count;
      rows.seq = seq;
      rows.heads = config_.heads;
      builder_.BeginTile(rows);
      AddSegments(run.start + at, count);
      AddWindow(run, run.start + at, count, grid);
      builder_.EndTile();
      at += count;
    }
  }

  kernels::Plan Finish() { return builder_.Finish(); }

 private:
  int Index(LsSource source) const { return index_[static_cast<int>(source)]; }

  void AddSegments(int32_t t0, int32_t count) {
    const int32_t rank = config_.rank, segment = config_.segment;
    const int32_t current = t0 / config_.block * config_.block / segment;
    const int32_t oldest = current - memory_;
    const Bias bias{
        kernels::kDotted, kSegmentTable, t0 / segment * rank - 1, rank, segment, t0 % segment, -1};
    if (config_.zero_memory) {
      // Counted from the oldest segment that any token sees, -memory_.
      Bias constant = bias;
      constant.base += memory_ * rank;
      builder_.AddAllKeys(Index(LsSource::kConstantSegments), 0,
                          (std::min(oldest, 0) + memory_) * rank, memory_ * rank, &constant,
                          Split::kSplit);
    }
    builder_.AddAllKeys(Index(LsSource::kEarly), 0, std::max(oldest, 0) * rank, current * rank,
                        &bias, Split::kSplit);
    seen_.clear();
    for (int32_t t = t0; t < t0 + count; ++t) {
      seen_.push_back({current * rank, t / segment * rank});
    }
    builder_.AddKeys(Index(LsSource::kLate), 0, seen_, &bias, Split::kSplit);
  }

  void AddWindow(const LsQueryRun& run, int32_t t0, int32_t count, int32_t grid) {
    const int32_t before = config_.window - 1;  // Constant places in front of the text.
    const int32_t cached_end = fresh_ ? run.start : run.start + run.tokens;
    Bias bias{kernels::kDotted, kWindowTable, t0, 1, 1, 0, -1};
    const auto add = [&](LsSource source, int32_t origin, auto interval) {
      seen_.clear();
      for (int32_t t = t0; t < t0 + count; ++t) {
        seen_.push_back(interval(t, std::max(0, t - before)));
      }
      builder_.AddKeys(Index(source), origin, seen_, &bias);
    };
    if (config_.zero_memory) {
      bias.base = t0 + before;
      add(LsSource::kConstantWindow, 0, [&](int32_t t, int32_t) {
        return t < before ? Interval{t, before} : Interval{0, 0};
      });
      bias.base = t0;
    }
    add(LsSource::kCached, 0, [&](int32_t t, int32_t lo) {
      return Interval{lo, std::min(t + 1, cached_end)};
    });
    if (!fresh_) return;
    bias.base = t0 - run.start;
    add(LsSource::kFresh, grid, [&](int32_t t, int32_t lo) {
      return Interval{std::max(0, lo - run.start), t + 1 - run.start};
    });
  }

  const LsLmConfig& config_;
  const bool fresh_;
  const int32_t tile_rows_;
  const int32_t memory_;  // Segments.
  int index_[6] = {};
  kernels::PlanBuilder builder_;
  std::vector<Interval> seen_;
};

kernels::Plan PlanPaper(const LsLmConfig& config, bool fresh, std::span<const LsQueryRun> runs,
                        int tile_rows) {
  kernels::PagedPattern pattern;
  pattern.heads = config.heads;
  pattern.window = config.window;
  pattern.segment = config.segment;
  pattern.rank = config.rank;
  pattern.fresh = fresh;
  pattern.window_table = kWindowTable;
  pattern.page_table = kSegmentTable;
  pattern.tile_rows = tile_rows;
  std::vector<kernels::PagedSequence> batch;
  for (const LsQueryRun& run : runs) {
    kernels::PagedSequence& sequence = batch.emplace_back();
    sequence.query_row0 = sequence.fresh_row0 = run.row0;
    sequence.tokens = run.tokens;
    sequence.start = run.start;
  }
  return PlanPaged(pattern, batch);
}

// Segments visible to a token at position t, from the first on that has an id.
int64_t VisibleSegments(const LsLmConfig& config, int64_t t) {
  const int64_t finished = t / config.segment;
  if (config.schedule == LsSchedule::kPaper) return finished;
  const int64_t oldest = (t / config.block * config.block - config.memory) / config.segment;
  return finished - (config.zero_memory ? oldest : std::max<int64_t>(oldest, 0));
}

}  // namespace

std::vector<LsSource> LsSources(const LsLmConfig& config, bool fresh) {
  std::vector<LsSource> sources;
  if (config.zero_memory) sources.push_back(LsSource::kConstantSegments);
  if (config.schedule == LsSchedule::kBlocks) sources.push_back(LsSource::kEarly);
  sources.push_back(LsSource::kLate);
  if (config.zero_memory) sources.push_back(LsSource::kConstantWindow);
  sources.push_back(LsSource::kCached);
  if (fresh) sources.push_back(LsSource::kFresh);
  return sources;
}

kernels::Plan PlanLsAttention(const LsLmConfig& config, bool fresh,
                              std::span<const LsQueryRun> runs, int tile_rows) {
  if (config.schedule == LsSchedule::kPaper) return PlanPaper(config, fresh, runs, tile_rows);
  BlocksPlanner planner(config, fresh, tile_rows);
  for (size_t i = 0; i < runs.size(); ++i) planner.AddRun(runs[i], static_cast<int32_t>(i));
  return planner.Finish();
}

int64_t SegmentIds(const LsLmConfig& config, int64_t t) {
  return VisibleSegments(config, t) * config.rank;
}

int64_t MostSegmentIds(const LsLmConfig& config, int64_t tokens) {
  if (tokens <= 0) return 0;
  const int64_t last = SegmentIds(config, tokens - 1);
  if (config.schedule == LsSchedule::kPaper) return last;
  // The last tokens of a block see most, as long as nothing is dropped.
  const int64_t whole = tokens / config.block * config.block;
  return whole == 0 ? last : std::max(last, SegmentIds(config, whole - 1));
}

int64_t VisibleKeys(const LsLmConfig& config, int64_t t) {
  const int64_t window =
      config.zero_memory ? config.window : std::min<int64_t>(t + 1, config.window);
  return window + SegmentIds(config, t);
}

void ReadScores(std::span<const int64_t> window_entry, std::span<const int64_t> segment_entry,
                int32_t row0, kernels::Plan& plan) {
  for (const kernels::Tile& tile : plan.tiles) {
    KERNEL_CHECK(tile.rows == 1);
    const int32_t run = tile.row0 - row0;
    for (int32_t s = tile.span0; s < tile.span0 + tile.spans; ++s) {
      Bias& bias = plan.biases[plan.spans[s].bias];
      bias.kind = kernels::kAdded;
      bias.base +=
          static_cast<int32_t>(bias.id == kWindowTable ? window_entry[run] : segment_entry[run]);
    }
  }
}

}  // namespace longview::models
