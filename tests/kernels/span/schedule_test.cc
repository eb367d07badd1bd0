// Transformer-LS language model, `blocks` schedule: constants, early and late segments.
#include "kernels/span/schedule_planner.h"

#include <gtest/gtest.h>

#include "tests/kernels/support/check.h"

namespace longview::kernels {
namespace {

using testing::DottedTable;
using testing::NaiveRow;
using testing::Problem;
using testing::RowsSource;
using testing::Tensor;

void CheckSchedule(SchedulePattern pattern, std::vector<int> lengths) {
  std::mt19937 random(55);
  const int l = pattern.segment;
  const int r = pattern.rank;
  const int heads = pattern.heads;
  int rows = 0;
  int segments = 0;
  int longest = 0;
  std::vector<ScheduleSequence> batch;
  for (const int n : lengths) {
    batch.push_back({rows, n, segments, segments});
    rows += n;
    segments += n / l * r;
    longest = std::max(longest, n);
  }
  const auto make = [&](int count) { return Tensor::Random(count, heads, 16, &random); };
  const Tensor q = make(rows), k = make(rows), v = make(rows);
  const Tensor early_k = make(segments + 1), early_v = make(segments + 1);
  const Tensor late_k = make(segments + 1), late_v = make(segments + 1);
  const Tensor segment0_k = make(1), segment0_v = make(1);
  const Tensor window0_k = make(1), window0_v = make(1);
  const Tensor window_table = make(pattern.window);
  const Tensor segment_table = make((longest + pattern.memory) / l * r + r);
  const float scale = 0.25f;
  const Problem problem{
      &q,
      16,
      scale,
      1,
      {RowsSource(segment0_k, segment0_v), RowsSource(early_k, early_v), RowsSource(late_k, late_v),
       RowsSource(window0_k, window0_v), RowsSource(k, v)},
      {DottedTable(window_table), DottedTable(segment_table)}};
  const auto definition = [&](int row, int h) {
    size_t s = 0;
    while (row >= batch[s].row0 + batch[s].tokens) ++s;
    const int t = row - batch[s].row0;
    const int block = t / pattern.block * pattern.block;
    const int oldest = (block - pattern.memory) / l;
    NaiveRow naive;
    for (int c = oldest; c < t / l; ++c) {
      for (int j = 0; j < r; ++j) {
        const bool late = c >= block / l;
        const Tensor& key = c < 0 ? segment0_k : late ? late_k : early_k;
        const Tensor& value = c < 0 ? segment0_v : late ? late_v : early_v;
        const int at = c < 0 ? 0 : batch[s].early_row0 + c * r + j;
        const int id = r * (t / l - c) - 1 - j;
        naive.Add(scale * (Dot(q, row, h, key, at, h) + Dot(q, row, h, segment_table, id, h)),
                  value, at, h);
      }
    }
    for (int p = t - pattern.window + 1; p <= t; ++p) {
      const Tensor& key = p < 0 ? window0_k : k;
      const Tensor& value = p < 0 ? window0_v : v;
      const int at = p < 0 ? 0 : batch[s].row0 + p;
      naive.Add(scale * (Dot(q, row, h, key, at, h) + Dot(q, row, h, window_table, t - p, h)),
                value, at, h);
    }
    return naive;
  };
  CheckPlanOutputs(
      [&](int tile_rows) {
        pattern.tile_rows = tile_rows;
        return PlanSchedule(pattern, batch);
      },
      problem, testing::Range(0, rows), definition);
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
