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

constexpr float kScale = 0.18f;

// Tensors and the learned table of a batch of maps.
struct Stage {
  Stage(const WindowGridPattern& pattern, const std::vector<Map>& maps, DType dtype)
      : pattern(pattern), random(41) {
    const int heads = pattern.heads;
    int rows = 0;
    int projected = 0;
    for (const Map& map : maps) {
      batch.push_back({rows, map.rows, map.cols, projected, map.projected});
      rows += pattern.class_tokens + map.rows * map.cols;
      projected += map.projected;
    }
    for (Tensor* tensor : {&q, &k, &v}) {
      *tensor = Tensor::Random(rows, heads, 32, &random, dtype);
    }
    for (Tensor* tensor : {&pk, &pv}) {
      *tensor = Tensor::Random(std::max(1, projected), heads, 32, &random, dtype);
    }
    problem = {&q, 32, kScale, 1, {RowsSource(k, v), RowsSource(pk, pv), RowsSource(k, v)}, {}};
    if (pattern.bias) ExpandTable();
  }

  void ExpandTable() {
    const int w = pattern.window;
    const int half = w / 2;
    const int rows = w == 1 ? 1 : 2 * (w + half - 1) * (2 * half + w + 1) + 1;
    learned = Tensor::Random(pattern.heads, 1, rows, &random);
    const std::vector<int32_t> entries = PlanWindowGrid(pattern, batch).bias_rows[0];
    expanded = Tensor(pattern.heads, 1, static_cast<int>(entries.size()));
    for (size_t i = 0; i < entries.size(); ++i) {
      ASSERT_LT(entries[i], rows);
      for (int h = 0; h < pattern.heads; ++h) {
        expanded.SetAt(h, 0, i, learned.At(h, 0, entries[i]));
      }
    }
    problem.tables = {AddedTable(expanded)};
  }

  double Bias(int dx, int dy, int h) const {
    if (!pattern.bias) return 0.0;
    const int w = pattern.window;
    const int half = w / 2;
    if (w == 1) return learned.At(h, 0, 0);
    return learned.At(h, 0, (dx + half + w - 1) * (w + 2 * half) + dy + half + w - 1);
  }

  // The token at (qx, qy) of image s; rank is its map's row-major index to row order.
  NaiveRow Expected(size_t s, const std::vector<int>& rank, int row, int qx, int qy, int h) const {
    NaiveRow naive;
    const WindowImage& image = batch[s];
    for (int j = 0; j < pattern.class_tokens; ++j) {
      naive.Add(kScale * Dot(q, row, h, k, image.row0 + j, h), v, image.row0 + j, h);
    }
    for (int j = 0; j < image.projected; ++j) {
      const int key = image.projected_row0 + j;
      naive.Add(kScale * Dot(q, row, h, pk, key, h), pv, key, h);
    }
    const int w = pattern.window;
    if (w == 0) return naive;
    const auto outside = [&](int at, int query) {
      const int group = query / w * w;
      return at < group - pattern.extension || at >= group + w + pattern.extension;
    };
    for (int x = 0; x < image.rows; ++x) {
      for (int y = 0; y < image.cols; ++y) {
        if (outside(x, qx) || outside(y, qy)) continue;
        const int key = image.row0 + pattern.class_tokens + rank[x * image.cols + y];
        naive.Add(kScale * Dot(q, row, h, k, key, h) + Bias(qx - x, qy - y, h), v, key, h);
      }
    }
    return naive;
  }

  const WindowGridPattern& pattern;
  std::mt19937 random;
  std::vector<WindowImage> batch;
  Tensor q{0, 1, 1}, k = q, v = q, pk = q, pv = q, learned = q, expanded = q;
  Problem problem;
};

void CheckImages(const WindowGridPattern& pattern, const std::vector<Map>& maps,
                 DType dtype = DType::kFloat32) {
  const Stage stage(pattern, maps, dtype);
  for (size_t s = 0; s < maps.size(); ++s) {
    const int row0 = stage.batch[s].row0 + pattern.class_tokens;
    const int cols = maps[s].cols;
    const std::vector<int32_t> order =
        ChunkMap(maps[s].rows, cols, std::max(1, pattern.window)).Order();
    std::vector<int> rank(order.size());
    for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<int>(i);
    CheckPlanOutputs(
        [&](int tile_rows) {
          WindowGridPattern tiled = pattern;
          tiled.tile_rows = tile_rows;
          return PlanWindowGrid(tiled, stage.batch).plan;
        },
        stage.problem, testing::Range(row0, maps[s].rows * cols),
        [&](int row, int h) {
          const int at = order[row - row0];
          return stage.Expected(s, rank, row, at / cols, at % cols, h);
        });
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
