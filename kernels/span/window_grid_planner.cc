#include "kernels/span/window_grid_planner.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/span/chunk_map.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

constexpr int kClass = 0;
constexpr int kProjected = 1;
constexpr int kWindows = 2;

// One group: its queries are a run of rows, its window a run of slots.
struct Group {
  int32_t m;
  int32_t n;
  int32_t first;  // Rank of its first token.
  int32_t rows;
  int32_t key0;  // From the image's window grid.
  int32_t keys;
  int32_t x0, x1, y0, y1;  // Window: map rows [x0, x1), columns [y0, y1).
};

class Planner {
 public:
  explicit Planner(const WindowGridPattern& pattern) : pattern_(pattern) {
    for (int i = 0; i < 3; ++i) builder_.AddSource(0, pattern.heads);
  }

  void AddImage(const WindowImage& image, int32_t seq) {
    image_ = &image;
    seq_ = seq;
    map_ = ChunkMap(image.rows, image.cols, std::max(1, pattern_.window));
    class_grid_ = builder_.NewGrid(kClass);
    builder_.AddRows(kClass, image.row0, 1, pattern_.class_tokens);
    projected_grid_ = builder_.NewGrid(kProjected);
    builder_.AddRows(kProjected, image.projected_row0, 1, image.projected);
    grid_ = builder_.NewGrid(kWindows);
    groups_.clear();
    const int32_t end = image.groups < map_.chunk_rows() - image.group0
                            ? image.group0 + image.groups
                            : map_.chunk_rows();
    for (int32_t m = 0; m < map_.chunk_rows(); ++m) {
      for (int32_t n = 0; n < map_.chunk_cols(); ++n) {
        Group group = OutlineGroup(m, n);
        if (pattern_.bias) PlaceBias(group);
        if (m < image.group0 || m >= end) continue;
        LayOutWindow(group);
        groups_.push_back(group);
      }
    }
    AddTiles();
  }

  WindowGridPlan Finish() { return {builder_.Finish(), tables_.Entries()}; }

 private:
  Group OutlineGroup(int32_t m, int32_t n) const {
    const int32_t w = std::max(1, pattern_.window);
    const int32_t e = pattern_.extension;
    Group group{};
    group.m = m;
    group.n = n;
    group.first = map_.First(m, n);
    group.rows = map_.Height(m) * map_.Width(n);
    if (pattern_.window == 0) return group;
    group.x0 = std::max(0, m * w - e);
    group.x1 = std::min(map_.rows(), m * w + w + e);
    group.y0 = std::max(0, n * w - e);
    group.y1 = std::min(map_.cols(), n * w + w + e);
    group.keys = (group.x1 - group.x0) * (group.y1 - group.y0);
    return group;
  }

  void LayOutWindow(Group& group) {
    if (pattern_.window == 0) return;
    const int32_t w = pattern_.window;
    // Large windows start a block; small ones follow each other, several groups share a tile.
    const int32_t span = w + 2 * pattern_.extension;
    if (span * span > kBlockSlots / 2) builder_.NewGrid(kWindows);
    group.key0 = builder_.AddRows(kWindows, 0, 1, 0) - grid_;
    const int32_t row0 = image_->row0 + pattern_.class_tokens;
    for (int32_t x = group.x0; x < group.x1; ++x) {
      for (int32_t y = group.y0; y < group.y1;) {
        const int32_t run = std::min(group.y1, (y / w + 1) * w) - y;
        builder_.AddRows(kWindows, row0 + map_.Rank(x, y), 1, run);
        y += run;
      }
    }
  }

  // Whole groups up to a tile's rows; a group larger than a tile is cut.
  void AddTiles() {
    for (size_t g = 0; g < groups_.size();) {
      if (groups_[g].rows > kMaxTileRows) {
        for (int32_t at = 0; at < groups_[g].rows; at += pattern_.tile_rows) {
          const int32_t rows = std::min(pattern_.tile_rows, groups_[g].rows - at);
          AddTile(std::span(groups_).subspan(g, 1), at, rows);
        }
        ++g;
        continue;
      }
      size_t last = g + 1;
      int32_t rows = groups_[g].rows;
      while (last < groups_.size() && rows + groups_[last].rows <= pattern_.tile_rows) {
        rows += groups_[last++].rows;
      }
      AddTile(std::span(groups_).subspan(g, last - g), 0, rows);
      g = last;
    }
  }

  // Rows at .. at + rows - 1 counted from the first group's first token.
  void AddTile(std::span<const Group> groups, int32_t at, int32_t rows) {
    builder_.BeginTile({.row0 = image_->row0 + pattern_.class_tokens + groups[0].first + at,
                        .rows = rows,
                        .seq = seq_,
                        .heads = pattern_.heads});
    builder_.AddAllKeys(kClass, class_grid_, 0, pattern_.class_tokens);
    builder_.AddAllKeys(kProjected, projected_grid_, 0, image_->projected);
    std::vector<Interval> seen(rows, Interval{0, 0});
    for (const Group& group : groups) {
      const int32_t begin = std::max(0, group.first - groups[0].first - at);
      const int32_t end = std::min(rows, group.first + group.rows - groups[0].first - at);
      std::fill(seen.begin() + begin, seen.begin() + end,
                Interval{group.key0, group.key0 + group.keys});
      if (!pattern_.bias) continue;
      // Entry of tile row i and key j of this group's own table.
      const int32_t row_of_tile = at + groups[0].first - group.first;
      const int32_t base = PlaceBias(group) + row_of_tile * group.keys - group.key0;
      const Bias bias{kAdded, image_->table, base, group.keys, 1, 0, 1};
      builder_.AddKeys(kWindows, grid_, seen, &bias);
      std::fill(seen.begin(), seen.end(), Interval{0, 0});
    }
    if (!pattern_.bias) builder_.AddKeys(kWindows, grid_, seen);
    builder_.EndTile();
  }

  int32_t PlaceBias(const Group& group) {
    const int32_t x = group.m * pattern_.window, y = group.n * pattern_.window;
    return tables_.Of(image_->table)
        .Add({group.rows, map_.Width(group.n), group.x0 - x, group.x1 - x, group.y0 - y,
              group.y1 - y},
             group.rows * group.keys, [&] { return BiasIndex(group); });
  }

  std::vector<int32_t> BiasIndex(const Group& group) const {
    const int32_t w = pattern_.window;
    const int32_t half = w / 2;
    std::vector<int32_t> index;
    for (int32_t i = 0; i < group.rows; ++i) {
      const int32_t qx = group.m * w + i / map_.Width(group.n);
      const int32_t qy = group.n * w + i % map_.Width(group.n);
      for (int32_t x = group.x0; x < group.x1; ++x) {
        for (int32_t y = group.y0; y < group.y1; ++y) {
          const int32_t u = qx - x + half + w - 1;
          const int32_t v = qy - y + half + w - 1;
          index.push_back(w == 1 ? 0 : u * (w + 2 * half) + v);
        }
      }
    }
    return index;
  }

  const WindowGridPattern& pattern_;
  PlanBuilder builder_;
  BatchBiasTables tables_;
  const WindowImage* image_ = nullptr;
  int32_t seq_ = 0;
  ChunkMap map_{1, 1, 1};
  int32_t class_grid_ = 0;
  int32_t projected_grid_ = 0;
  int32_t grid_ = 0;
  std::vector<Group> groups_;
};

}  // namespace

WindowGridPlan PlanWindowGrid(const WindowGridPattern& pattern,
                              std::span<const WindowImage> batch) {
  KERNEL_CHECK(pattern.window >= 0 && pattern.extension >= 0 && pattern.class_tokens >= 0);
  KERNEL_CHECK(pattern.extension <= std::max(1, pattern.window));
  KERNEL_CHECK(!pattern.bias || pattern.window <= 1 || pattern.extension == pattern.window / 2);
  Planner planner(pattern);
  for (size_t s = 0; s < batch.size(); ++s) planner.AddImage(batch[s], static_cast<int32_t>(s));
  return planner.Finish();
}

}  // namespace longview::kernels
