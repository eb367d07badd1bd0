// Full attention on a feature map with a relative table.
#include "kernels/span/map_planner.h"

#include <gtest/gtest.h>

#include <utility>

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
};

// Images of several sizes, each with the learned table of its size.
struct Stage {
  Stage(MapPattern pattern, const std::vector<Map>& maps, int tile_rows) : random(19) {
    pattern.tile_rows = tile_rows;
    int rows = 0;
    for (size_t s = 0; s < maps.size(); ++s) {
      images.push_back({rows, maps[s].rows, maps[s].cols, static_cast<int32_t>(s)});
      rows += pattern.globals + maps[s].rows * maps[s].cols;
    }
    for (Tensor* tensor : {&q, &k, &v}) *tensor = Tensor::Random(rows, pattern.heads, 16, &random);
    const int g = pattern.globals;
    g2l = Tensor::Random(pattern.heads, 1, std::max(1, 2 * g), &random);
    g2g = Tensor::Random(pattern.heads, 1, std::max(1, g * g), &random);
    for (const Map& map : maps) {
      learned.push_back(
          Tensor::Random(pattern.heads, 1, (2 * map.rows - 1) * (2 * map.cols - 1), &random));
    }
    MapPlan made = PlanMap(pattern, images);
    plan = std::move(made.plan);
    problem = {&q, 16, 0.25f, 1, {RowsSource(k, v), RowsSource(k, v)}, {}};
    expanded.reserve(maps.size());
    problem.tables = {AddedTable(g2l), AddedTable(g2g)};
    for (size_t s = 0; pattern.bias && s < maps.size(); ++s) {
      const std::vector<int32_t>& entries = made.bias_rows[s];
      Tensor& table = expanded.emplace_back(pattern.heads, 1, static_cast<int>(entries.size()));
      for (size_t i = 0; i < entries.size(); ++i) {
        for (int h = 0; h < pattern.heads; ++h) {
          table.SetAt(h, 0, i, learned[s].At(h, 0, entries[i]));
        }
      }
      problem.tables.push_back(AddedTable(table));
    }
  }

  double Bias(const MapPattern& pattern, size_t s, int a, int b, int h) const {
    const int g = pattern.globals;
    if (!pattern.bias) return 0.0;
    if (a < g && b < g) return g2g.At(h, 0, a * g + b);
    if (a < g) return g2l.At(h, 0, a);
    if (b < g) return g2l.At(h, 0, g + b);
    const int nx = images[s].rows, ny = images[s].cols;
    const int dx = (a - g) / ny - (b - g) / ny;
    const int dy = (a - g) % ny - (b - g) % ny;
    return learned[s].At(h, 0, (dx + nx - 1) * (2 * ny - 1) + dy + ny - 1);
  }

  std::mt19937 random;
  std::vector<MapImage> images;
  Tensor q{0, 1, 1}, k = q, v = q, g2l = q, g2g = q;
  std::vector<Tensor> learned, expanded;
  Plan plan;
  Problem problem;
};

void CheckMaps(const MapPattern& pattern, const std::vector<Map>& maps) {
  for (size_t s = 0; s < maps.size(); ++s) {
    const int tokens = pattern.globals + maps[s].rows * maps[s].cols;
    for (const int tile_rows : {48, 64}) {
      const Stage stage(pattern, maps, tile_rows);
      const int row0 = stage.images[s].row0;
      CheckPlanOutputs([&](int) { return stage.plan; }, stage.problem, testing::Range(row0, tokens),
                       [&](int row, int h) {
                         NaiveRow naive;
                         for (int j = 0; j < tokens; ++j) {
                           const double bias = stage.Bias(pattern, s, row - row0, j, h);
                           naive.Add(0.25f * Dot(stage.q, row, h, stage.k, row0 + j, h) + bias,
                                     stage.v, row0 + j, h);
                         }
                         return naive;
                       });
    }
  }
}

MapPattern Pattern(int heads, int globals, bool bias = true) {
  MapPattern pattern;
  pattern.heads = heads;
  pattern.globals = globals;
  pattern.bias = bias;
  return pattern;
}

TEST(MapTest, SmallMapsOfSeveralSizes) {
  CheckMaps(Pattern(2, 1), {{14, 14}, {14, 14}, {9, 7}});
  CheckMaps(Pattern(3, 0), {{7, 7}, {1, 30}, {30, 1}});
  CheckMaps(Pattern(1, 2), {{1, 1}, {24, 24}});
}

TEST(MapTest, WideAndLargeMaps) {
  CheckMaps(Pattern(1, 3), {{5, 60}, {40, 33}});
  CheckMaps(Pattern(1, 0), {{40, 30}});
}

TEST(MapTest, WithoutBias) { CheckMaps(Pattern(2, 1, false), {{12, 10}, {3, 50}}); }

}  // namespace
}  // namespace longview::kernels
