// Full attention on a feature map with a relative table.
#include "kernels/span/map_planner.h"

#include <gtest/gtest.h>

#include "tests/kernels/support/check.h"

namespace longview::kernels {
namespace {

using testing::NaiveRow;
using testing::Problem;
using testing::RowsSource;
using testing::Tensor;

void CheckMap(MapPattern pattern, int images) {
  std::mt19937 random(19);
  const int heads = pattern.heads;
  const int g = pattern.globals;
  const int nx = pattern.rows;
  const int ny = pattern.cols;
  const int tokens = g + nx * ny;
  std::vector<int32_t> row0;
  for (int s = 0; s < images; ++s) row0.push_back(s * tokens);
  const Tensor q = Tensor::Random(images * tokens, heads, 16, &random);
  const Tensor k = Tensor::Random(images * tokens, heads, 16, &random);
  const Tensor v = Tensor::Random(images * tokens, heads, 16, &random);
  const Tensor table = Tensor::Random(heads, 1, (2 * nx - 1) * (2 * ny - 1), &random);
  const Tensor g2l = Tensor::Random(heads, 1, std::max(1, 2 * g), &random);
  const Tensor g2g = Tensor::Random(heads, 1, std::max(1, g * g), &random);
  const Problem problem{&q,
                        16,
                        0.25f,
                        1,
                        {RowsSource(k, v), RowsSource(k, v)},
                        {AddedTable(table), AddedTable(g2l), AddedTable(g2g)}};
  const auto bias = [&](int a, int b, int h) {
    if (!pattern.bias) return 0.0;
    if (a < g && b < g) return double{g2g.At(h, 0, a * g + b)};
    if (a < g) return double{g2l.At(h, 0, a)};
    if (b < g) return double{g2l.At(h, 0, g + b)};
    const int dx = (a - g) / ny - (b - g) / ny;
    const int dy = (a - g) % ny - (b - g) % ny;
    return double{table.At(h, 0, (dx + nx - 1) * (2 * ny - 1) + dy + ny - 1)};
  };
  CheckPlanOutputs(
      [&](int tile_rows) {
        pattern.tile_rows = tile_rows;
        return PlanMap(pattern, row0);
      },
      problem, testing::Range(0, images * tokens),
      [&](int row, int h) {
        NaiveRow naive;
        const int first = row / tokens * tokens;
        for (int j = 0; j < tokens; ++j) {
          naive.Add(0.25f * Dot(q, row, h, k, first + j, h) + bias(row - first, j, h), v, first + j,
                    h);
        }
        return naive;
      });
}

TEST(MapTest, EverySize) {
  CheckMap({2, 1, 14, 14, true, 48}, 2);
  CheckMap({3, 0, 7, 7, true, 48}, 1);
  CheckMap({1, 3, 5, 60, true, 48}, 1);
  CheckMap({1, 2, 1, 1, true, 48}, 2);
  CheckMap({2, 1, 12, 10, false, 48}, 1);
}

}  // namespace
}  // namespace longview::kernels
