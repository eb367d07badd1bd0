#include "kernels/cuda/span/decode_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace longview::kernels::cuda {
namespace {

// Tiles of the same rows and heads, in the order in which their states are merged.
using TileKey = std::tuple<int32_t, int32_t, int32_t>;  // row0, row_step, head0.

class Cutter {
 public:
  explicit Cutter(const Plan& plan) : from_(plan) {
    plan_.sources = plan.sources;
    plan_.runs = plan.runs;
    plan_.valid = plan.valid;
    plan_.useful = plan.useful;
    plan_.executed = plan.executed;
  }

  Plan Run() {
    std::map<TileKey, std::vector<const Tile*>> groups;
    for (const Tile& tile : from_.tiles) {
      groups[{tile.row0, tile.row_step, tile.head0}].push_back(&tile);
    }
    for (auto& [key, tiles] : groups) {
      std::stable_sort(tiles.begin(), tiles.end(),
                       [](const Tile* a, const Tile* b) { return a->part < b->part; });
      CutGroup(tiles);
    }
    SortItems();
    return std::move(plan_);
  }

 private:
  // Identity of the piece that a span belongs to; neighbours of one piece share a tile.
  struct Piece {
    int32_t source;
    int32_t cell;  // -1: not paged.
    bool operator==(const Piece&) const = default;
  };

  void CutGroup(const std::vector<const Tile*>& tiles) {
    std::vector<std::pair<Piece, Span>> spans;
    for (const Tile* tile : tiles) {
      for (int s = 0; s < tile->spans; ++s) {
        CutSpan(from_.spans[tile->span0 + s], tile->rows, &spans);
      }
    }
    std::vector<Tile> pieces;
    for (size_t i = 0; i < spans.size(); ++i) {
      if (i == 0 || spans[i].first != spans[i - 1].first) {
        pieces.push_back(*tiles.front());
        pieces.back().span0 = static_cast<int32_t>(plan_.spans.size());
        pieces.back().spans = 0;
      }
      plan_.spans.push_back(spans[i].second);
      ++pieces.back().spans;
    }
    // A row that sees no key keeps one tile without spans, which writes its zeros.
    if (pieces.empty()) {
      pieces.push_back(*tiles.front());
      pieces.back().span0 = static_cast<int32_t>(plan_.spans.size());
      pieces.back().spans = 0;
    }
    AddTiles(pieces);
  }

  // The parts of a span that lie in one piece each.
  void CutSpan(const Span& span, int rows, std::vector<std::pair<Piece, Span>>* out) {
    const bool paged = from_.sources[span.source].slots == 0;
    if (span.keys <= 0) return;
    if (!paged) {
      out->push_back({{span.source, -1}, Part(span, rows, 0, span.keys)});
      return;
    }
    for (int32_t lo = 0; lo < span.keys;) {
      const int32_t cell = (span.key0 + lo) / kDecodePiece;
      const int32_t hi = std::min(span.keys, (cell + 1) * kDecodePiece - span.key0);
      out->push_back({{span.source, cell}, Part(span, rows, lo, hi)});
      lo = hi;
    }
  }

  // Keys [lo, hi) of a span, in span coordinates of their own.
  Span Part(const Span& span, int rows, int32_t lo, int32_t hi) {
    Span part = span;
    part.key0 = span.key0 + lo;
    part.keys = hi - lo;
    if (span.interval >= 0) {
      part.interval = static_cast<int32_t>(plan_.intervals.size());
      for (int i = 0; i < rows; ++i) {
        const Interval seen = from_.intervals[span.interval + i];
        plan_.intervals.push_back({seen.lo - lo, seen.hi - lo});
      }
    }
    if (span.bias >= 0) {
      Bias bias = from_.biases[span.bias];
      // The part counts its keys from 0, so its bias begins `lo` keys further on.
      bias.base += bias.key_mul * lo;
      part.bias = static_cast<int32_t>(plan_.biases.size());
      plan_.biases.push_back(bias);
    }
    return part;
  }

  void AddTiles(std::vector<Tile>& pieces) {
    const Tile& shape = pieces.front();
    const int32_t stride = shape.rows * shape.heads;
    const int32_t part0 = plan_.partial_slots;
    const bool one = pieces.size() == 1;
    for (Tile& tile : pieces) {
      tile.part = one ? -1 : plan_.partial_slots;
      if (!one) plan_.partial_slots += stride;
      for (int h = 0; h < tile.heads; ++h) {
        plan_.items.push_back({static_cast<int32_t>(plan_.tiles.size()), tile.head0 + h});
      }
      plan_.tiles.push_back(tile);
    }
    for (int h = 0; !one && h < shape.heads; ++h) {
      for (int i = 0; i < shape.rows; ++i) {
        plan_.merges.push_back({shape.row0 + i * shape.row_step, shape.head0 + h,
                                part0 + h * shape.rows + i, stride,
                                static_cast<int32_t>(pieces.size())});
      }
    }
  }

  // Long pieces first, so that none is left over at the end.
  void SortItems() {
    std::vector<int64_t> keys(plan_.tiles.size(), 0);
    for (size_t t = 0; t < plan_.tiles.size(); ++t) {
      const Tile& tile = plan_.tiles[t];
      for (int s = 0; s < tile.spans; ++s) keys[t] += plan_.spans[tile.span0 + s].keys;
    }
    std::stable_sort(plan_.items.begin(), plan_.items.end(),
                     [&](const Item& a, const Item& b) { return keys[a.tile] > keys[b.tile]; });
  }

  const Plan& from_;
  Plan plan_;
};

}  // namespace

Plan CutForDecode(const Plan& plan) { return Cutter(plan).Run(); }

}  // namespace longview::kernels::cuda
