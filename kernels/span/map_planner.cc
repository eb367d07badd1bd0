#include "kernels/span/map_planner.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/check.h"
#include "kernels/span/chunk_map.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

constexpr int kGlobals = 0;
constexpr int kMap = 1;

// Beyond, a map row fills half a block by itself, or the expanded table costs more than it saves.
constexpr int32_t kMostExpandedCols = 32;
constexpr int32_t kMostExpandedTokens = 1024;

class Planner {
 public:
  explicit Planner(const MapPattern& pattern) : pattern_(pattern) {
    builder_.AddSource(0, pattern.heads);
    builder_.AddSource(0, pattern.heads);
  }

  void AddImage(const MapImage& image, int32_t seq) {
    KERNEL_CHECK(image.rows >= 1 && image.cols >= 1);
    image_ = &image;
    seq_ = seq;
    global_grid_ = builder_.NewGrid(kGlobals);
    map_grid_ = builder_.NewGrid(kMap);
    builder_.AddRows(kGlobals, image.row0, 1, pattern_.globals);
    builder_.AddRows(kMap, image.row0 + pattern_.globals, 1, Tokens());
    AddGlobalTiles();
    if (!pattern_.bias) {
      AddTiles(pattern_.tile_rows, nullptr);
    } else if (image.cols <= std::min(kMostExpandedCols, pattern_.tile_rows) &&
               Tokens() <= kMostExpandedTokens) {
      AddExpandedTiles();
    } else {
      AddRowTiles();
    }
  }

  MapPlan Finish() { return {builder_.Finish(), tables_.Entries()}; }

 private:
  int32_t Tokens() const { return image_->rows * image_->cols; }
  int32_t TableId() const { return 2 + image_->table; }

  // Rows counted from the image's first.
  void BeginTile(int32_t row, int32_t rows) {
    builder_.BeginTile(
        {.row0 = image_->row0 + row, .rows = rows, .seq = seq_, .heads = pattern_.heads});
  }

  void AddGlobalTiles() {
    const int32_t g = pattern_.globals;
    for (int32_t at = 0; at < g; at += pattern_.tile_rows) {
      const Bias among{kAdded, 1, at * g, g, 1, 0, 1};
      const Bias to_map{kAdded, 0, at, 1, 1, 0, 0};
      BeginTile(at, std::min(pattern_.tile_rows, g - at));
      builder_.AddAllKeys(kGlobals, global_grid_, 0, g, pattern_.bias ? &among : nullptr);
      builder_.AddAllKeys(kMap, map_grid_, 0, Tokens(), pattern_.bias ? &to_map : nullptr);
      builder_.EndTile();
    }
  }

  void AddGlobalKeys() {
    const Bias to_global{kAdded, 0, pattern_.globals, 0, 1, 0, 1};
    builder_.AddAllKeys(kGlobals, global_grid_, 0, pattern_.globals,
                        pattern_.bias ? &to_global : nullptr);
  }

  // Tiles of `step` tokens; the bias of a tile's first row and key 0 is `bias`, moved back by a
  // tile's keys from tile to tile.
  void AddTiles(int32_t step, const Bias* bias) {
    for (int32_t at = 0; at < Tokens(); at += step) {
      BeginTile(pattern_.globals + at, std::min(step, Tokens() - at));
      AddGlobalKeys();
      Bias moved = bias == nullptr ? Bias{} : *bias;
      moved.base -= at;
      builder_.AddAllKeys(kMap, map_grid_, 0, Tokens(), bias == nullptr ? nullptr : &moved);
      builder_.EndTile();
    }
  }

  // Whole map rows x0 .. of a tile: row i and key (x, y) read entry i * pitch +
  // (x - x0 + rows - 1) * cols + y, which grows by one from key to key.
  void AddExpandedTiles() {
    const int32_t rows = image_->rows, cols = image_->cols;
    const int32_t lines = std::clamp(pattern_.tile_rows / cols, 1, rows);
    const int32_t pitch = (2 * rows - 1) * cols;
    const int32_t base = tables_.Of(image_->table).Add({rows, cols}, lines * cols * pitch, [&] {
      return ExpandedIndex(lines);
    });
    const Bias bias{kAdded, TableId(), base + (rows - 1) * cols, pitch, 1, 0, 1};
    AddTiles(lines * cols, &bias);
  }

  std::vector<int32_t> ExpandedIndex(int32_t lines) const {
    const int32_t rows = image_->rows, cols = image_->cols;
    std::vector<int32_t> index;
    for (int32_t i = 0; i < lines * cols; ++i) {
      for (int32_t x = 1 - rows; x < rows; ++x) {
        // Row i of a tile that has this key row is never farther away than the map is high.
        const int32_t dx = std::min(i / cols - x, rows - 1);
        for (int32_t y = 0; y < cols; ++y) {
          index.push_back((dx + rows - 1) * (2 * cols - 1) + i % cols - y + cols - 1);
        }
      }
    }
    return index;
  }

  // Queries of one map row; a span per row of keys.
  void AddRowTiles() {
    const int32_t rows = image_->rows, cols = image_->cols;
    const int32_t learned = (2 * rows - 1) * (2 * cols - 1);
    const int32_t base = tables_.Of(image_->table).Add({rows, cols}, learned, [&] {
      std::vector<int32_t> index(learned);
      std::iota(index.begin(), index.end(), 0);
      return index;
    });
    for (int32_t x = 0; x < rows; ++x) {
      for (int32_t y = 0; y < cols; y += pattern_.tile_rows) {
        BeginTile(pattern_.globals + x * cols + y, std::min(pattern_.tile_rows, cols - y));
        AddGlobalKeys();
        for (int32_t key_x = 0; key_x < rows; ++key_x) {
          const int32_t first = key_x * cols;
          const int32_t entry = base + (x - key_x + rows - 1) * (2 * cols - 1) + y + cols - 1;
          const Bias bias{kAdded, TableId(), entry + first, 1, 1, 0, -1};
          builder_.AddAllKeys(kMap, map_grid_, first, first + cols, &bias);
        }
        builder_.EndTile();
      }
    }
  }

  const MapPattern& pattern_;
  PlanBuilder builder_;
  BatchBiasTables tables_;
  const MapImage* image_ = nullptr;
  int32_t seq_ = 0;
  int32_t global_grid_ = 0;
  int32_t map_grid_ = 0;
};

}  // namespace

MapPlan PlanMap(const MapPattern& pattern, std::span<const MapImage> batch) {
  KERNEL_CHECK(pattern.globals >= 0);
  Planner planner(pattern);
  for (size_t s = 0; s < batch.size(); ++s) planner.AddImage(batch[s], static_cast<int32_t>(s));
  return planner.Finish();
}

}  // namespace longview::kernels
