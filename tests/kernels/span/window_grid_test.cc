// ViL-LS and CvT-LS: class token, projected keys and widened groups on a feature map.
#include "kernels/span/window_grid_planner.h"

#include <gtest/gtest.h>

#include "kernels/span/chunk_map.h"
#include "tests/kernels/support/check.h"

namespace longview::kernels {
namespace {

using testing::NaiveRow;
using testing::Problem;
using testing::RowsSource;
using testing::Tensor;

struct Map {
  int rows;
  int cols;
  int projected;
};

void CheckImages(WindowGridPattern pattern, std::vector<Map> maps, DType dtype = DType::kFloat32) {
  std::mt19937 random(41);
  const int heads = pattern.heads;
  const int w = pattern.window;
  const int e = pattern.extension;
  const int half = w / 2;
  int rows = 0;
  int projected = 0;
  std::vector<WindowImage> batch;
  for (const Map& map : maps) {
    batch.push_back({rows, map.rows, map.cols, projected, map.projected});
    rows += pattern.class_tokens + map.rows * map.cols;
    projected += map.projected;
  }
  const Tensor q = Tensor::Random(rows, heads, 32, &random, dtype);
  const Tensor k = Tensor::Random(rows, heads, 32, &random, dtype);
  const Tensor v = Tensor::Random(rows, heads, 32, &random, dtype);
  const Tensor pk = Tensor::Random(std::max(1, projected), heads, 32, &random, dtype);
  const Tensor pv = Tensor::Random(std::max(1, projected), heads, 32, &random, dtype);
  const int table_rows = w == 1 ? 1 : 2 * (w + half - 1) * (2 * half + w + 1) + 1;
  const Tensor learned = Tensor::Random(heads, 1, std::max(1, table_rows), &random);
  Tensor expanded(heads, 1, 1);
  const float scale = 0.18f;
  Problem problem{&q, 32, scale, 1, {RowsSource(k, v), RowsSource(pk, pv), RowsSource(k, v)}, {}};
  if (pattern.bias) {
    const std::vector<int32_t> entries = PlanWindowGrid(pattern, batch).bias_rows;
    expanded = Tensor(heads, 1, static_cast<int>(entries.size()));
    for (size_t i = 0; i < entries.size(); ++i) {
      ASSERT_LT(entries[i], table_rows);
      for (int h = 0; h < heads; ++h) expanded.SetAt(h, 0, i, learned.At(h, 0, entries[i]));
    }
    problem.tables = {AddedTable(expanded)};
  }
  for (size_t s = 0; s < maps.size(); ++s) {
    const int row0 = batch[s].row0 + pattern.class_tokens;
    const std::vector<int32_t> order = ChunkMap(maps[s].rows, maps[s].cols, std::max(1, w)).Order();
    std::vector<int> rank(order.size());
    for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<int>(i);
    const auto definition = [&](int row, int h) {
      NaiveRow naive;
      const int qx = order[row - row0] / maps[s].cols;
      const int qy = order[row - row0] % maps[s].cols;
      for (int j = 0; j < pattern.class_tokens; ++j) {
        const int key = batch[s].row0 + j;
        naive.Add(scale * Dot(q, row, h, k, key, h), v, key, h);
      }
      for (int j = 0; j < maps[s].projected; ++j) {
        const int key = batch[s].projected_row0 + j;
        naive.Add(scale * Dot(q, row, h, pk, key, h), pv, key, h);
      }
      for (int x = 0; w > 0 && x < maps[s].rows; ++x) {
        for (int y = 0; y < maps[s].cols; ++y) {
          const int gx = qx / w * w;
          const int gy = qy / w * w;
          if (x < gx - e || x >= gx + w + e || y < gy - e || y >= gy + w + e) continue;
          const int u = qx - x + half + w - 1;
          const int t = qy - y + half + w - 1;
          const int entry = w == 1 ? 0 : u * (w + 2 * half) + t;
          const double bias = pattern.bias ? double{learned.At(h, 0, entry)} : 0.0;
          const int key = row0 + rank[x * maps[s].cols + y];
          naive.Add(scale * Dot(q, row, h, k, key, h) + bias, v, key, h);
        }
      }
      return naive;
    };
    CheckPlanOutputs(
        [&](int tile_rows) {
          pattern.tile_rows = tile_rows;
          return PlanWindowGrid(pattern, batch).plan;
        },
        problem, testing::Range(row0, maps[s].rows * maps[s].cols), definition);
  }
}

TEST(WindowGridTest, EveryWindowWithAndWithoutBias) {
  for (int w : {1, 2, 3, 4, 7, 8, 12}) {
    for (bool bias : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "w " << w << " bias " << bias);
      WindowGridPattern pattern;
      pattern.heads = 2;
      pattern.window = w;
      pattern.extension = std::max(w / 2, 1);
      pattern.class_tokens = 1;
      pattern.bias = bias;
      CheckImages(pattern, {{2 * w, w == 12 ? w : 3 * w, 8}, {1, 1, 1}, {w + 1, w / 2 + 2, 0}});
    }
  }
}

TEST(WindowGridTest, ProjectedKeysOnlyAndBFloat16) {
  WindowGridPattern pattern;
  pattern.heads = 1;
  CheckImages(pattern, {{9, 11, 16}});
  pattern.window = 4;
  pattern.extension = 2;
  pattern.class_tokens = 1;
  CheckImages(pattern, {{12, 12, 16}}, DType::kBFloat16);
}

}  // namespace
}  // namespace longview::kernels
