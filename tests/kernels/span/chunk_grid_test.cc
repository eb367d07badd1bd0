// Vision Longformer: the three masking rules, modes, relative bias, global rows.
#include "kernels/span/chunk_grid_planner.h"

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
};

// The reference procedure of microsoft/vision-longformer, slot by slot: 9 neighbours of w * w
// places in unwrapped coordinates, masked by the rule.
class Reference {
 public:
  Reference(const ChunkPattern& pattern, Map map, int row0)
      : pattern_(pattern), map_(map), row0_(row0) {
    mx_ = (map.rows + pattern.chunk - 1) / pattern.chunk;
    my_ = (map.cols + pattern.chunk - 1) / pattern.chunk;
    const std::vector<int32_t> order = ChunkMap(map.rows, map.cols, pattern.chunk).Order();
    row_of_.resize(order.size());
    for (size_t rank = 0; rank < order.size(); ++rank) {
      row_of_[order[rank]] = row0 + pattern.globals + static_cast<int>(rank);
    }
  }

  int Row(int x, int y) const { return row_of_[x * map_.cols + y]; }

  // Calls visit(key row or -1 for a zero key, query minus key offsets) for each local key.
  template <typename Visit>
  void LocalKeys(int x, int y, Visit&& visit) const {
    const int w = pattern_.chunk;
    for (int dx = -1; dx <= 1; ++dx) {
      for (int dy = -1; dy <= 1; ++dy) {
        if (pattern_.own_chunk_only && (dx != 0 || dy != 0)) continue;
        const int m = x / w + dx;
        const int n = y / w + dy;
        for (int tx = 0; tx < w; ++tx) {
          for (int ty = 0; ty < w; ++ty) Place(x, y, m, n, tx, ty, visit);
        }
      }
    }
  }

 private:
  template <typename Visit>
  void Place(int x, int y, int m, int n, int tx, int ty, Visit&& visit) const {
    const int w = pattern_.chunk;
    const int X = m * w + tx;
    const int Y = n * w + ty;
    if (pattern_.rule == ChunkRule::kCyclic) {
      const bool masked = (m == mx_ - 1 && (mx_ - 1) * w + tx >= map_.rows) ||
                          (n == my_ - 1 && (my_ - 1) * w + ty >= map_.cols);
      if (masked) return;
      const int from_x = (m + mx_) % mx_ * w + tx;
      const int from_y = (n + my_) % my_ * w + ty;
      const bool real = from_x < map_.rows && from_y < map_.cols;
      visit(real ? Row(from_x, from_y) : -1, x - X, y - Y);
      return;
    }
    if (X < 0 || X >= map_.rows || Y < 0 || Y >= map_.cols) return;
    const bool near = std::abs(X - x) <= w && std::abs(Y - y) <= w;
    if (pattern_.rule == ChunkRule::kExact && !near) return;
    visit(Row(X, Y), x - X, y - Y);
  }

  const ChunkPattern& pattern_;
  Map map_;
  int row0_, mx_, my_;
  std::vector<int> row_of_;
};

constexpr float kScale = 0.18f;

// Tensors and learned tables of a batch of maps.
struct Stage {
  Stage(const ChunkPattern& pattern, const std::vector<Map>& maps, DType dtype)
      : pattern(pattern), random(13) {
    const int heads = pattern.heads;
    const int g = pattern.globals;
    const int w = pattern.chunk;
    int rows = 0;
    for (const Map& map : maps) {
      batch.push_back({rows, map.rows, map.cols});
      rows += g + map.rows * map.cols;
    }
    for (Tensor* tensor : {&q, &k, &v}) {
      *tensor = Tensor::Random(rows, heads, 32, &random, dtype);
    }
    zero = Tensor(1, heads, 32, dtype);
    local_table = Tensor::Random(heads, 1, (4 * w - 1) * (4 * w - 1), &random);
    g2l = Tensor::Random(heads, 1, std::max(1, 2 * g), &random);
    g2g = Tensor::Random(heads, 1, std::max(1, g * g), &random);
    problem = {&q, 32, kScale, 1, {RowsSource(k, v), RowsSource(k, v)}, {}};
    if (pattern.rule == ChunkRule::kCyclic) problem.sources.push_back(RowsSource(zero, zero));
    if (pattern.bias) ExpandTable();
  }

  void ExpandTable() {
    const std::vector<int32_t> entries = PlanChunkGrid(pattern, batch).bias_rows[0];
    expanded = Tensor(pattern.heads, 1, static_cast<int>(entries.size()));
    for (size_t i = 0; i < entries.size(); ++i) {
      for (int h = 0; h < pattern.heads; ++h) {
        expanded.SetAt(h, 0, i, local_table.At(h, 0, entries[i]));
      }
    }
    problem.tables = {AddedTable(g2l), AddedTable(g2g), AddedTable(expanded)};
  }

  double Bias(const Tensor& table, int entry, int h) const {
    return pattern.bias ? double{table.At(h, 0, entry)} : 0.0;
  }

  // Row `row` of the image whose rows start at row0; place[i] is row0 + i's map position.
  NaiveRow Expected(const Reference& reference, const std::vector<std::pair<int, int>>& place,
                    int row0, int row, int h) const {
    NaiveRow naive;
    const int g = pattern.globals;
    const int t = row - row0;
    const auto add = [&](int key, double bias) {
      naive.Add(kScale * Dot(q, row, h, k, key, h) + bias, v, key, h);
    };
    if (t < g) {
      for (int j = 0; j < static_cast<int>(place.size()); ++j) {
        add(row0 + j, j < g ? Bias(g2g, t * g + j, h) : Bias(g2l, t, h));
      }
      return naive;
    }
    for (int j = 0; j < g; ++j) {
      add(row0 + j, pattern.only_global ? 0.0 : Bias(g2l, g + j, h));
    }
    if (pattern.only_global) return naive;
    const int w = pattern.chunk;
    reference.LocalKeys(place[t].first, place[t].second, [&](int key, int dx, int dy) {
      const int entry = (dx + 2 * w - 1) * (4 * w - 1) + dy + 2 * w - 1;
      if (key >= 0) {
        add(key, Bias(local_table, entry, h));
      } else {
        naive.Add(Bias(local_table, entry, h), zero, 0, h);
      }
    });
    return naive;
  }

  const ChunkPattern& pattern;
  std::mt19937 random;
  std::vector<ChunkImage> batch;
  Tensor q{0, 1, 1}, k = q, v = q, zero = q, local_table = q, g2l = q, g2g = q, expanded = q;
  Problem problem;
};

void CheckImages(ChunkPattern pattern, const std::vector<Map>& maps,
                 DType dtype = DType::kFloat32) {
  const Stage stage(pattern, maps, dtype);
  for (size_t s = 0; s < maps.size(); ++s) {
    const int row0 = stage.batch[s].row0;
    const Reference reference(pattern, maps[s], row0);
    std::vector<std::pair<int, int>> place(pattern.globals + maps[s].rows * maps[s].cols);
    for (int x = 0; x < maps[s].rows; ++x) {
      for (int y = 0; y < maps[s].cols; ++y) place[reference.Row(x, y) - row0] = {x, y};
    }
    CheckPlanOutputs(
        [&](int tile_rows) {
          ChunkPattern tiled = pattern;
          tiled.tile_rows = tile_rows;
          return PlanChunkGrid(tiled, stage.batch).plan;
        },
        stage.problem, testing::Range(row0, static_cast<int>(place.size())),
        [&](int row, int h) { return stage.Expected(reference, place, row0, row, h); });
  }
}

ChunkPattern Pattern(int w, int g, ChunkRule rule = ChunkRule::kChunks, bool bias = true) {
  ChunkPattern pattern;
  pattern.heads = 2;
  pattern.chunk = w;
  pattern.globals = g;
  pattern.rule = rule;
  pattern.bias = bias;
  return pattern;
}

const std::vector<Map> kMaps = {{14, 14}, {1, 1}, {9, 23}, {15, 6}, {2, 30}};

TEST(ChunkGridTest, WholeChunks) {
  CheckImages(Pattern(7, 1), kMaps);
  CheckImages(Pattern(2, 0), {{5, 5}, {4, 3}});
  CheckImages(Pattern(1, 3), {{3, 4}});
  CheckImages(Pattern(12, 1), {{24, 30}});
  CheckImages(Pattern(7, 1, ChunkRule::kChunks, false), kMaps, DType::kBFloat16);
}

TEST(ChunkGridTest, ExactWindow) {
  CheckImages(Pattern(4, 1, ChunkRule::kExact), {{14, 14}, {1, 1}, {9, 13}, {3, 20}});
}

TEST(ChunkGridTest, CyclicChunks) {
  CheckImages(Pattern(4, 1, ChunkRule::kCyclic), {{16, 16}, {1, 1}, {9, 13}, {5, 8}, {3, 20}});
  CheckImages(Pattern(3, 0, ChunkRule::kCyclic), {{10, 10}});
}

TEST(ChunkGridTest, OwnChunkOnlyAndGlobalsOnly) {
  ChunkPattern own = Pattern(4, 2);
  own.own_chunk_only = true;
  CheckImages(own, {{9, 13}});
  ChunkPattern only_global = Pattern(7, 20);
  only_global.only_global = true;
  CheckImages(only_global, {{14, 9}});
}

}  // namespace
}  // namespace longview::kernels
