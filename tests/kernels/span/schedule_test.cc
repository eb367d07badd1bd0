// Transformer-LS language model, `blocks` schedule: constants, early and late segments.
#include "kernels/span/schedule_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "tests/kernels/support/check.h"

namespace longview::kernels {
namespace {

using testing::DottedTable;
using testing::NaiveRow;
using testing::Problem;
using testing::RowsSource;
using testing::Tensor;

constexpr float kScale = 0.25f;

struct Stage {
  Stage(const SchedulePattern& pattern, const std::vector<int>& lengths) : pattern(pattern) {
    std::mt19937 random(55);
    int segments = 0;
    int longest = 0;
    for (const int n : lengths) {
      batch.push_back({rows, n, segments, segments});
      rows += n;
      segments += n / pattern.segment * pattern.rank;
      longest = std::max(longest, n);
    }
    const auto fill = [&](std::initializer_list<Tensor*> tensors, int count) {
      for (Tensor* tensor : tensors) {
        *tensor = Tensor::Random(count, pattern.heads, 16, &random);
      }
    };
    fill({&q, &k, &v}, rows);
    fill({&early_k, &early_v, &late_k, &late_v}, segments + 1);
    fill({&segment0_k, &segment0_v, &window0_k, &window0_v}, 1);
    fill({&window_table}, pattern.window);
    fill({&segment_table}, ((longest + pattern.memory) / pattern.segment + 1) * pattern.rank);
    problem = {&q,
               16,
               kScale,
               1,
               {RowsSource(segment0_k, segment0_v), RowsSource(early_k, early_v),
                RowsSource(late_k, late_v), RowsSource(window0_k, window0_v), RowsSource(k, v)},
               {DottedTable(window_table), DottedTable(segment_table)}};
  }

  NaiveRow Expected(int row, int h) const {
    size_t s = 0;
    while (row >= batch[s].row0 + batch[s].tokens) ++s;
    const int t = row - batch[s].row0;
    const int l = pattern.segment;
    const int r = pattern.rank;
    const int block = t / pattern.block * pattern.block;
    NaiveRow naive;
    for (int c = (block - pattern.memory) / l; c < t / l; ++c) {
      for (int j = 0; j < r; ++j) {
        const bool late = c >= block / l;
        const Tensor& key = c < 0 ? segment0_k : late ? late_k : early_k;
        const Tensor& value = c < 0 ? segment0_v : late ? late_v : early_v;
        const int at = c < 0 ? 0 : batch[s].early_row0 + c * r + j;
        const int id = r * (t / l - c) - 1 - j;
        naive.Add(kScale * (Dot(q, row, h, key, at, h) + Dot(q, row, h, segment_table, id, h)),
                  value, at, h);
      }
    }
    for (int p = t - pattern.window + 1; p <= t; ++p) {
      const Tensor& key = p < 0 ? window0_k : k;
      const Tensor& value = p < 0 ? window0_v : v;
      const int at = p < 0 ? 0 : batch[s].row0 + p;
      naive.Add(kScale * (Dot(q, row, h, key, at, h) + Dot(q, row, h, window_table, t - p, h)),
                value, at, h);
    }
    return naive;
  }

  const SchedulePattern& pattern;
  int rows = 0;
  std::vector<ScheduleSequence> batch;
  Tensor q{0, 1, 1}, k = q, v = q, early_k = q, early_v = q, late_k = q, late_v = q;
  Tensor segment0_k = q, segment0_v = q, window0_k = q, window0_v = q;
  Tensor window_table = q, segment_table = q;
  Problem problem;
};

void CheckSchedule(const SchedulePattern& pattern, const std::vector<int>& lengths) {
  const Stage stage(pattern, lengths);
  CheckPlanOutputs(
      [&](int tile_rows) {
        SchedulePattern tiled = pattern;
        tiled.tile_rows = tile_rows;
        return PlanSchedule(tiled, stage.batch);
      },
      stage.problem, testing::Range(0, stage.rows),
      [&](int row, int h) { return stage.Expected(row, h); });
}

TEST(ScheduleTest, BlocksAndMemory) {
  CheckSchedule({2, 32, 16, 1, 64, 128, 48}, {300, 1, 64, 65});
  CheckSchedule({1, 8, 4, 3, 20, 12, 48}, {131, 19, 20, 21});
  CheckSchedule({1, 16, 8, 1, 1000, 400, 48}, {200});
}

TEST(ScheduleTest, MemoryBeyondOneSplit) {
  CheckSchedule({1, 4, 1, 2, 8, 2 * kSplitSlots / 2 + 70, 48}, {20});
}

}  // namespace
}  // namespace longview::kernels
