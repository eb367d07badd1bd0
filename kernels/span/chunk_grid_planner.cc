#include "kernels/span/chunk_grid_planner.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/span/chunk_map.h"
#include "kernels/span/plan_builder.h"

namespace longview::kernels {
namespace {

constexpr int kGlobals = 0;
constexpr int kLocals = 1;
constexpr int kZero = 2;

// A key of a chunk's list: where it lies from the query chunk's origin, unwrapped.
struct Place {
  int32_t x;
  int32_t y;
};

// Keys of one neighbour that lie side by side: real ones in one chunk, or zero keys.
struct Neighbour {
  int source;
  int32_t key0;   // From the source's grid.
  int32_t width;  // Keys of a map row, for the exact rule.
  std::vector<Place> places;
};

class Planner {
 public:
  explicit Planner(const ChunkPattern& pattern) : pattern_(pattern) {
    builder_.AddSource(0, pattern.heads);
    builder_.AddSource(0, pattern.heads);
    if (pattern.rule == ChunkRule::kCyclic) {
      builder_.AddSource(0, pattern.heads);
      builder_.AddRows(kZero, 0, 0, pattern.chunk * pattern.chunk);
    }
  }

  void AddImage(const ChunkImage& image, int32_t seq) {
    image_ = &image;
    seq_ = seq;
    map_ = ChunkMap(image.rows, image.cols, pattern_.chunk);
    global_grid_ = builder_.NewGrid(kGlobals);
    builder_.AddRows(kGlobals, image.row0, 1, pattern_.globals);
    LayOutChunks();
    if (pattern_.global_rows) AddGlobalTiles();
    if (!pattern_.local_rows) return;
    for (int32_t m = 0; m < map_.chunk_rows(); ++m) {
      for (int32_t n = 0; n < map_.chunk_cols(); ++n) AddChunkTiles(m, n);
    }
  }

  ChunkGridPlan Finish() { return {builder_.Finish(), tables_.Entries()}; }

 private:
  // Every chunk starts on a block border of its own, so that its spans are whole blocks.
  void LayOutChunks() {
    grid_ = builder_.NewGrid(kLocals);
    chunk_slot_.clear();
    for (int32_t m = 0; m < map_.chunk_rows(); ++m) {
      for (int32_t n = 0; n < map_.chunk_cols(); ++n) {
        chunk_slot_.push_back(builder_.NewGrid(kLocals) - grid_);
        builder_.AddRows(kLocals, image_->row0 + pattern_.globals + map_.First(m, n), 1,
                         map_.Height(m) * map_.Width(n));
      }
    }
  }

  int32_t ChunkSlot(int32_t m, int32_t n) const { return chunk_slot_[m * map_.chunk_cols() + n]; }

  TileRowsOf RowsAt(int32_t row, int32_t rows) const {
    return {.row0 = image_->row0 + row, .rows = rows, .seq = seq_, .heads = pattern_.heads};
  }

  void AddGlobalTiles() {
    const int32_t g = pattern_.globals;
    for (int32_t at = 0; at < g; at += pattern_.tile_rows) {
      const Bias among{kAdded, 1, at * g, g, 1, 0, 1};
      const Bias to_local{kAdded, 0, at, 1, 1, 0, 0};
      builder_.BeginTile(RowsAt(at, std::min(pattern_.tile_rows, g - at)));
      builder_.AddAllKeys(kGlobals, global_grid_, 0, g, pattern_.bias ? &among : nullptr);
      for (int32_t m = 0; m < map_.chunk_rows(); ++m) {
        for (int32_t n = 0; n < map_.chunk_cols(); ++n) {
          const int32_t slot = ChunkSlot(m, n);
          builder_.AddAllKeys(kLocals, grid_, slot, slot + map_.Height(m) * map_.Width(n),
                              pattern_.bias ? &to_local : nullptr, Split::kSplit);
        }
      }
      builder_.EndTile();
    }
  }

  void AddChunkTiles(int32_t m, int32_t n) {
    const int32_t count = map_.Height(m) * map_.Width(n);
    const std::vector<Neighbour> neighbours =
        pattern_.only_global ? std::vector<Neighbour>{} : Neighbours(m, n);
    int32_t pitch = 0;
    for (const Neighbour& neighbour : neighbours) {
      pitch += static_cast<int32_t>(neighbour.places.size());
    }
    const int32_t table = pattern_.bias ? PlaceBias(m, n, neighbours, count * pitch) : 0;
    const Bias to_global{kAdded, 0, pattern_.globals, 0, 1, 0, 1};
    const bool biased_globals = pattern_.bias && !pattern_.only_global;
    // A chunk up to the largest tile stays whole: a second tile would walk the same keys again.
    const int32_t step = count <= kMaxTileRows ? count : pattern_.tile_rows;
    for (int32_t at = 0; at < count; at += step) {
      const int32_t rows = std::min(step, count - at);
      builder_.BeginTile(RowsAt(pattern_.globals + map_.First(m, n) + at, rows));
      builder_.AddAllKeys(kGlobals, global_grid_, 0, pattern_.globals,
                          biased_globals ? &to_global : nullptr);
      int32_t key = 0;
      for (const Neighbour& neighbour : neighbours) {
        const Bias bias{
            kAdded, 2 + image_->table, table + at * pitch + key - neighbour.key0, pitch, 1, 0, 1};
        AddNeighbour(neighbour, n, at, rows, pattern_.bias ? &bias : nullptr);
        key += static_cast<int32_t>(neighbour.places.size());
      }
      builder_.EndTile();
    }
  }

  void AddNeighbour(const Neighbour& neighbour, int32_t n, int32_t at, int32_t rows,
                    const Bias* bias) {
    const int32_t grid = neighbour.source == kZero ? 0 : grid_;
    const int32_t keys = static_cast<int32_t>(neighbour.places.size());
    if (pattern_.rule != ChunkRule::kExact) {
      builder_.AddAllKeys(neighbour.source, grid, neighbour.key0, neighbour.key0 + keys, bias);
      return;
    }
    // One span per map row of the neighbour: within it the window is an interval.
    const int32_t reach = pattern_.chunk;
    for (int32_t line = 0; line < keys; line += neighbour.width) {
      const Place first = neighbour.places[line];
      std::vector<Interval> seen;
      for (int32_t i = at; i < at + rows; ++i) {
        const int32_t x = i / map_.Width(n);
        const int32_t y = i % map_.Width(n);
        const int32_t lo = std::clamp(y - reach - first.y, 0, neighbour.width);
        const int32_t hi = std::clamp(y + reach + 1 - first.y, lo, neighbour.width);
        const bool near = std::abs(first.x - x) <= reach;
        const int32_t key = neighbour.key0 + line;
        seen.push_back(near ? Interval{key + lo, key + hi} : Interval{0, 0});
      }
      builder_.AddKeys(neighbour.source, grid, seen, bias);
    }
  }

  std::vector<Neighbour> Neighbours(int32_t m, int32_t n) const {
    std::vector<Neighbour> neighbours;
    for (int32_t dx = -1; dx <= 1; ++dx) {
      for (int32_t dy = -1; dy <= 1; ++dy) {
        if (pattern_.own_chunk_only && (dx != 0 || dy != 0)) continue;
        if (pattern_.rule == ChunkRule::kCyclic) {
          AddCyclic(m, n, dx, dy, &neighbours);
          continue;
        }
        const bool inside =
            m + dx >= 0 && m + dx < map_.chunk_rows() && n + dy >= 0 && n + dy < map_.chunk_cols();
        if (inside) neighbours.push_back(RealKeys(m + dx, n + dy, dx, dy));
      }
    }
    return neighbours;
  }

  // The tokens of chunk (m, n), seen dx, dy chunks away.
  Neighbour RealKeys(int32_t m, int32_t n, int32_t dx, int32_t dy) const {
    Neighbour neighbour{kLocals, ChunkSlot(m, n), map_.Width(n), {}};
    for (int32_t x = 0; x < map_.Height(m); ++x) {
      for (int32_t y = 0; y < map_.Width(n); ++y) {
        neighbour.places.push_back({dx * pattern_.chunk + x, dy * pattern_.chunk + y});
      }
    }
    return neighbour;
  }

  // Padding is masked only where the unwrapped chunk is the last one of its axis.
  void AddCyclic(int32_t m, int32_t n, int32_t dx, int32_t dy,
                 std::vector<Neighbour>* neighbours) const {
    const int32_t w = pattern_.chunk;
    const int32_t wrapped_m = (m + dx + map_.chunk_rows()) % map_.chunk_rows();
    const int32_t wrapped_n = (n + dy + map_.chunk_cols()) % map_.chunk_cols();
    neighbours->push_back(RealKeys(wrapped_m, wrapped_n, dx, dy));
    Neighbour zeros{kZero, 0, 0, {}};
    for (int32_t x = 0; x < w; ++x) {
      for (int32_t y = 0; y < w; ++y) {
        const bool pad_x = x >= map_.Height(wrapped_m);
        const bool pad_y = y >= map_.Width(wrapped_n);
        const bool masked = (pad_x && m + dx == map_.chunk_rows() - 1) ||
                            (pad_y && n + dy == map_.chunk_cols() - 1);
        if ((pad_x || pad_y) && !masked) zeros.places.push_back({dx * w + x, dy * w + y});
      }
    }
    if (!zeros.places.empty()) neighbours->push_back(std::move(zeros));
  }

  int32_t PlaceBias(int32_t m, int32_t n, const std::vector<Neighbour>& neighbours, int32_t size) {
    std::vector<int32_t> signature = {map_.Height(m), map_.Width(n)};
    for (const Neighbour& neighbour : neighbours) {
      const Place first = neighbour.places.front(), last = neighbour.places.back();
      signature.insert(signature.end(), {neighbour.source, first.x, first.y, last.x, last.y});
    }
    return tables_.Of(image_->table).Add(std::move(signature), size, [&] {
      return BiasIndex(m, n, neighbours);
    });
  }

  std::vector<int32_t> BiasIndex(int32_t m, int32_t n,
                                 const std::vector<Neighbour>& neighbours) const {
    const int32_t w = pattern_.chunk;
    std::vector<int32_t> index;
    for (int32_t i = 0; i < map_.Height(m) * map_.Width(n); ++i) {
      for (const Neighbour& neighbour : neighbours) {
        for (const Place& place : neighbour.places) {
          const int32_t dx = i / map_.Width(n) - place.x;
          const int32_t dy = i % map_.Width(n) - place.y;
          index.push_back((dx + 2 * w - 1) * (4 * w - 1) + dy + 2 * w - 1);
        }
      }
    }
    return index;
  }

  const ChunkPattern& pattern_;
  PlanBuilder builder_;
  BatchBiasTables tables_;
  const ChunkImage* image_ = nullptr;
  int32_t seq_ = 0;
  ChunkMap map_{1, 1, 1};
  int32_t global_grid_ = 0;
  int32_t grid_ = 0;
  std::vector<int32_t> chunk_slot_;
};

}  // namespace

ChunkGridPlan PlanChunkGrid(const ChunkPattern& pattern, std::span<const ChunkImage> batch) {
  KERNEL_CHECK(pattern.globals >= 0);
  KERNEL_CHECK(pattern.rule != ChunkRule::kExact || !pattern.own_chunk_only);
  Planner planner(pattern);
  for (size_t s = 0; s < batch.size(); ++s) planner.AddImage(batch[s], static_cast<int32_t>(s));
  return planner.Finish();
}

}  // namespace longview::kernels
