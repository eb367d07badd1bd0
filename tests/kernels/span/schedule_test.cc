// Transformer-LS language model over cached state, both schedules: constants, early and late
// segments, windows; decode steps, chunks of prefill, whole texts.
#include "kernels/span/schedule_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>

#include "tests/kernels/support/check.h"
#include "tests/kernels/support/pages.h"

namespace longview::kernels {
namespace {

using testing::DottedTable;
using testing::NaiveRow;
using testing::PageTable;
using testing::Problem;
using testing::Tensor;

constexpr float kScale = 0.25f;
constexpr int kDim = 16;

// Tokens of a text that are read next, behind `start` others.
struct Stream {
  int start;
  int tokens;
};

class Stage {
 public:
  Stage(const SchedulePattern& pattern, bool fresh, const std::vector<Stream>& streams)
      : pattern_(pattern), streams_(streams) {
    int queries = 0, longest = 0;
    for (const Stream& stream : streams) {
      runs.push_back({queries, stream.tokens, stream.start});
      queries += stream.tokens;
      longest = std::max(longest, stream.start + stream.tokens);
    }
    q_ = Random(queries);
    window_table_ = Random(pattern.window);
    segment_table_ = Random(
        static_cast<int>(std::max<int64_t>(1, pattern.MostSegmentIds(longest) + pattern.memory)));
    // Every text is a beginning of the same one.
    const int segments = longest / pattern.segment * pattern.rank;
    for (Pair* pair : {&early_, &late_}) *pair = {Random(segments + 1), Random(segments + 1)};
    text_ = {Random(longest), Random(longest)};
    const int memory = pattern.memory / pattern.segment * pattern.rank;
    segment0_ = Equal(memory + 1);
    window0_ = Equal(pattern.window);
    for (const ScheduleSource source : pattern.Sources(fresh)) Add(source, segments, memory);
    problem.q = &q_;
    problem.out_dim = kDim;
    problem.scale = kScale;
    problem.tables = {DottedTable(window_table_), DottedTable(segment_table_)};
  }

  // Row `row` straight from the definition.
  NaiveRow Expected(int row, int h) const {
    size_t s = 0;
    while (row >= runs[s].row0 + runs[s].tokens) ++s;
    const int t = runs[s].start + row - runs[s].row0;
    const int l = pattern_.segment, r = pattern_.rank;
    const int block = pattern_.paper() ? 0 : t / pattern_.block * pattern_.block;
    const int first = pattern_.paper() ? 0 : (block - pattern_.memory) / l;
    NaiveRow naive;
    const auto add = [&](const Pair& pair, int at, const Tensor& table, int id) {
      naive.Add(kScale * (Dot(q_, row, h, pair.k, at, h) + Dot(q_, row, h, table, id, h)), pair.v,
                at, h);
    };
    for (int c = pattern_.zero_memory ? first : std::max(first, 0); c < t / l; ++c) {
      for (int j = 0; j < r; ++j) {
        const Pair& pair = c < 0 ? segment0_ : c >= block / l ? late_ : early_;
        add(pair, c < 0 ? 0 : c * r + j, segment_table_, r * (t / l - c) - 1 - j);
      }
    }
    for (int p = t - pattern_.window + 1; p <= t; ++p) {
      if (p < 0 && !pattern_.zero_memory) continue;
      add(p < 0 ? window0_ : text_, std::max(p, 0), window_table_, t - p);
    }
    return naive;
  }

  std::vector<ScheduleRun> runs;
  Problem problem;

 private:
  struct Pair {
    Tensor k{0, 1, 1}, v{0, 1, 1};
  };

  Tensor Random(int rows) { return Tensor::Random(rows, pattern_.heads, kDim, &random_); }

  Pair Equal(int rows) {
    Pair pair = {Random(rows), Random(rows)};
    for (Tensor* tensor : {&pair.k, &pair.v}) {
      for (int i = 1; i < rows; ++i) {
        for (int h = 0; h < pattern_.heads; ++h) {
          for (int d = 0; d < kDim; ++d) tensor->SetAt(i, h, d, tensor->At(0, h, d));
        }
      }
    }
    return pair;
  }

  void Add(ScheduleSource source, int segments, int memory) {
    if (source == ScheduleSource::kFresh) {
      fresh_ = {Random(q_.rows()), Random(q_.rows())};
      for (const ScheduleRun& run : runs) {
        for (int i = 0; i < run.tokens; ++i) CopyRow(run.start + i, run.row0 + i);
      }
      problem.sources.push_back(testing::RowsSource(fresh_.k, fresh_.v));
      return;
    }
    const auto add = [&](const Pair& pair, int slots) {
      const int blocks = static_cast<int>(runs.size()) * (slots / kBlockSlots + 1);
      PageTable& table = *tables_.emplace_back(std::make_unique<PageTable>(
          DType::kFloat32, kDim, kDim, pattern_.heads, blocks, &random_));
      for (size_t i = 0; i < runs.size(); ++i) table.Add(pair.k, pair.v, 0, 0, slots);
      problem.sources.push_back(table.AsSource());
    };
    switch (source) {
      case ScheduleSource::kConstantSegments:
        return add(segment0_, memory);
      case ScheduleSource::kEarly:
        return add(early_, segments);
      case ScheduleSource::kLate:
        return add(late_, segments);
      case ScheduleSource::kConstantWindow:
        return add(window0_, pattern_.window - 1);
      default:
        return add(text_, text_.k.rows());
    }
  }

  void CopyRow(int from, int to) {
    for (int h = 0; h < pattern_.heads; ++h) {
      for (int d = 0; d < kDim; ++d) {
        fresh_.k.SetAt(to, h, d, text_.k.At(from, h, d));
        fresh_.v.SetAt(to, h, d, text_.v.At(from, h, d));
      }
    }
  }

  const SchedulePattern pattern_;
  const std::vector<Stream> streams_;
  std::mt19937 random_{55};
  Tensor q_{0, 1, 1}, window_table_ = q_, segment_table_ = q_;
  Pair early_, late_, text_, fresh_, segment0_, window0_;
  std::vector<std::unique_ptr<PageTable>> tables_;
};

void CheckSchedule(const SchedulePattern& pattern, bool fresh, const std::vector<Stream>& streams) {
  const Stage stage(pattern, fresh, streams);
  const ScheduleRun& last = stage.runs.back();
  CheckPlanOutputs(
      [&](int tile_rows) { return PlanSchedule(pattern, fresh, stage.runs, tile_rows); },
      stage.problem, testing::Range(0, last.row0 + last.tokens),
      [&](int row, int h) { return stage.Expected(row, h); });
}

const std::vector<Stream> kSteps = {{0, 1}, {7, 1}, {63, 1}, {64, 1}, {65, 1}, {300, 1}};

TEST(ScheduleTest, Paper) {
  CheckSchedule({2, 32, 16, 1}, true, {{0, 300}, {64, 1}, {128, 64}, {0, 65}});
  CheckSchedule({1, 8, 4, 3}, false, kSteps);
}

TEST(ScheduleTest, BlocksAndMemory) {
  CheckSchedule({2, 32, 16, 1, 64, 128, true}, true, {{0, 300}, {0, 1}, {64, 64}, {192, 65}});
  CheckSchedule({1, 8, 4, 3, 20, 12, true}, true, {{0, 131}, {0, 19}, {64, 20}, {128, 21}});
  CheckSchedule({1, 16, 8, 1, 1000, 400, true}, true, {{0, 200}});
  CheckSchedule({2, 32, 16, 1, 64, 128, true}, false, kSteps);
  CheckSchedule({1, 100, 4, 3, 20, 100, true}, false, kSteps);
}

TEST(ScheduleTest, BlocksWithNothingBeforeTheText) {
  CheckSchedule({2, 32, 16, 1, 64, 128, false}, true, {{0, 300}, {64, 64}});
  CheckSchedule({1, 8, 4, 3, 20, 12, false}, false, kSteps);
}

TEST(ScheduleTest, MemoryBeyondOneSplit) {
  CheckSchedule({1, 4, 1, 2, 8, kSplitSlots + 70, true}, true, {{0, 20}});
}

// Ids are what tokens see, and the most of them is reached.
TEST(ScheduleTest, CountsOfIdsAndKeys) {
  for (const SchedulePattern& pattern :
       {SchedulePattern{1, 8, 4, 3}, SchedulePattern{1, 8, 4, 3, 20, 12, true},
        SchedulePattern{1, 16, 4, 1, 12, 40, false}}) {
    int64_t most = 0;
    for (int t = 0; t < 150; ++t) {
      const ScheduleRun run = {0, 1, t};
      const int64_t keys = pattern.VisibleKeys(t);
      EXPECT_EQ(PlanSchedule(pattern, false, {&run, 1}, 48).useful, keys) << t;
      most = std::max(most, pattern.SegmentIds(t));
      EXPECT_EQ(pattern.MostSegmentIds(t + 1), most) << t;
    }
  }
}

}  // namespace
}  // namespace longview::kernels
