#include "kernels/span/vector_kernel.h"

#include <algorithm>
#include <numbers>

#include "kernels/span/tile_bias.h"
#include "kernels/span/tile_rows.h"

namespace longview::kernels {
namespace {

constexpr uint64_t kAllKeys = ~uint64_t{0};

// Tiles of no more rows draw blocks into cache ahead of use.
constexpr int kFewRows = 8;

// Bits [lo, hi) of a word; empty when hi <= lo. Bounds outside 0 .. 64 are clipped.
uint64_t BitRange(int64_t lo, int64_t hi) {
  lo = std::clamp<int64_t>(lo, 0, 64);
  hi = std::clamp<int64_t>(hi, 0, 64);
  if (hi <= lo) return 0;
  return (kAllKeys >> (64 - (hi - lo))) << lo;
}

// Hands out pieces of a scratch block, or only counts when the block is null.
class Carver {
 public:
  explicit Carver(std::byte* block) : block_(block) {}

  template <typename T>
  T* Take(size_t count) {
    T* piece = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + used_);
    used_ += AlignUp(count * sizeof(T));
    return piece;
  }

  size_t used() const { return used_; }

 private:
  std::byte* block_;
  size_t used_ = 0;
};

struct TileScratch {
  TileState state;
  uint64_t* masks = nullptr;
  BiasScratch bias;
  size_t bytes = 0;
};

TileScratch CarveScratch(const Plan& plan, const Call& call, DType panels, std::byte* block) {
  const KvLayout layout(panels, call.Dk, call.Dv, 1);
  Carver carver(block);
  TileScratch scratch;
  TileState& state = scratch.state;
  state.dk = layout.padded_dk();
  state.dv = layout.padded_dv();
  state.scale = call.scale * std::numbers::log2e_v<float>;
  state.q = carver.Take<std::byte>(kMaxTileRows * state.dk * SizeOf(panels));
  state.s = carver.Take<float>(kMaxTileRows * kBlockKeys);
  state.o = carver.Take<float>(kMaxTileRows * state.dv);
  state.l = carver.Take<float>(kMaxTileRows * 16);
  state.m = carver.Take<float>(kMaxTileRows);
  scratch.masks = carver.Take<uint64_t>(kMaxTileRows);
  if (!plan.biases.empty()) scratch.bias.matrix = carver.Take<float>(kMaxTileRows * kBlockKeys);
  if (HasDotted(plan)) {
    scratch.bias.dk = state.dk;
    scratch.bias.q = carver.Take<float>(kMaxTileRows * state.dk);
    scratch.bias.panel = carver.Take<float>(kBlockKeys * state.dk);
    scratch.bias.products = carver.Take<float>(kMaxTileRows * kDottedEntries);
  }
  scratch.bytes = carver.used();
  return scratch;
}

void ClearState(const TileState& state) {
  std::fill_n(state.o, state.rows * state.dv, 0.0f);
  std::fill_n(state.l, state.rows * 16, 0.0f);
  std::fill_n(state.m, state.rows, kLowestScore);
}

// The item that this thread takes after `item`, or null.
const Item* NextItem(const Plan& plan, const Item& item, int threads) {
  const auto index = &item - plan.items.data() + threads;
  return index < static_cast<int64_t>(plan.items.size()) ? &plan.items[index] : nullptr;
}

// Walks one tile for one head.
class TileWalk {
 public:
  TileWalk(const VectorOps& ops, const TileJob& job, const Item& item, std::byte* scratch)
      : ops_(ops),
        job_(job),
        call_(*job.call),
        tile_(job.plan->tiles[item.tile]),
        head_(item.head),
        next_(NextItem(*job.plan, item, job.threads)),
        scratch_(CarveScratch(*job.plan, call_, Panels(ops), scratch)) {
    scratch_.state.rows = tile_.rows;
  }

  static DType Panels(const VectorOps& ops) {
    return ops.bfloat16_panels ? DType::kBFloat16 : DType::kFloat32;
  }

  void Run() {
    ClearState(scratch_.state);
    for (int s = 0; s < tile_.spans; ++s) AddSpan(s);
    if (tile_.part < 0) {
      StoreRows(call_, tile_, head_, scratch_.state);
    } else {
      StorePartials(job_.partials, call_, tile_, head_, scratch_.state);
    }
  }

 private:
  void AddSpan(int span_index) {
    const Span& span = job_.plan->spans[tile_.span0 + span_index];
    if (span.keys <= 0) return;
    const PanelSource& source = job_.sources[span.source];
    // Spans in a row that add the same term to the queries share one gathering.
    if (!gathered_ || source.q_add != q_add_) GatherQueries(source.q_add);
    const Bias* bias = span.bias < 0 ? nullptr : &job_.plan->biases[span.bias];
    if (bias != nullptr && bias->kind == kDotted) {
      GatherDottedQueries(call_, tile_, head_, call_.tables[bias->id], scratch_.bias);
    }
    const int kv_head = head_ / call_.kv_group;
    const int64_t begin = span.key0 / kBlockSlots;
    const int64_t end = (span.key0 + static_cast<int64_t>(span.keys) - 1) / kBlockSlots + 1;
    for (int64_t b = begin; b < end; ++b) {
      BlockWork work;
      const View view = ViewBlock(span, source, b, bias != nullptr);
      if (view == View::kNone) continue;
      work.k = source.K(tile_.seq, b, kv_head);
      work.v = source.V(tile_.seq, b, kv_head);
      if (tile_.rows <= kFewRows) {
        // Few rows do little with a block: memory sets their pace.
        DrawNext(span_index, b, end, work);
      } else if (span_index + 1 == tile_.spans && b + 1 == end &&
                 (b + 1) * kBlockSlots < job_.plan->sources[span.source].slots) {
        // Windows slide: the next tile of the head reads the block behind this one's last.
        work.next_k = source.K(tile_.seq, b + 1, kv_head);
        work.next_v = source.V(tile_.seq, b + 1, kv_head);
      }
      if (view == View::kPart) work.masks = scratch_.masks;
      if (bias != nullptr) {
        const auto key0 = static_cast<int32_t>(b * kBlockSlots - span.key0);
        FillBias(ops_, call_, tile_, head_, *bias, key0, scratch_.masks, scratch_.bias);
        work.bias = scratch_.bias.matrix;
      }
      ops_.add_block(scratch_.state, work);
      PrefetchRows();
    }
  }

  // The block that this thread reads after block `b` of the tile's span: in the span, which ends at
  // block `end`, in a later one, or in the thread's next item.
  void DrawNext(int span_index, int64_t b, int64_t end, BlockWork& work) const {
    if (b + 1 < end)
      return SetNext(tile_, job_.plan->spans[tile_.span0 + span_index], head_, b + 1, work);
    if (FirstBlock(tile_, span_index + 1, head_, work) || next_ == nullptr) return;
    FirstBlock(job_.plan->tiles[next_->tile], 0, next_->head, work);
  }

  // False: no keys from that span on.
  bool FirstBlock(const Tile& tile, int first_span, int head, BlockWork& work) const {
    for (int s = first_span; s < tile.spans; ++s) {
      const Span& span = job_.plan->spans[tile.span0 + s];
      if (span.keys <= 0) continue;
      SetNext(tile, span, head, span.key0 / kBlockSlots, work);
      return true;
    }
    return false;
  }

  void SetNext(const Tile& tile, const Span& span, int head, int64_t block, BlockWork& work) const {
    const PanelSource& source = job_.sources[span.source];
    work.next_k = source.K(tile.seq, block, head / call_.kv_group);
    work.next_v = source.V(tile.seq, block, head / call_.kv_group);
  }

  // A few rows of what this tile will write and the thread's next tile will read.
  void PrefetchRows() {
    constexpr int kRows = 6;
    const int first = blocks_++ * kRows;
    if (tile_.part < 0) PrefetchOutputs(call_, tile_, head_, first, kRows);
    if (next_ == nullptr) return;
    PrefetchQueries(call_, job_.plan->tiles[next_->tile], next_->head, first, kRows);
  }

  void GatherQueries(const float* add) {
    gathered_ = true;
    q_add_ = add;
    const float* row = add == nullptr ? nullptr : add + head_ * call_.Dk;
    const TileState& state = scratch_.state;
    if (ops_.bfloat16_panels) {
      GatherBf16Queries(call_, tile_, head_, row, state.dk, static_cast<uint16_t*>(state.q));
    } else {
      GatherFloatQueries(call_, tile_, head_, row, state.dk, static_cast<float*>(state.q));
    }
  }

  enum class View { kNone, kPart, kAll };

  // Fills the masks of the keys of block `b` that each row sees, unless all rows see all of them
  // and `want_masks` is false. Returns how much of the block is seen.
  View ViewBlock(const Span& span, const PanelSource& source, int64_t b, bool want_masks) {
    const int64_t origin = span.key0 - b * kBlockSlots;  // Slot of span coordinate 0, in the block.
    uint64_t cover = BitRange(origin, origin + span.keys);
    if (span.holes != 0 && source.valid != nullptr) cover &= source.valid[b];
    if (cover == 0) return View::kNone;
    uint64_t* masks = scratch_.masks;
    if (span.interval < 0) {
      if (cover != kAllKeys || want_masks) std::fill_n(masks, tile_.rows, cover);
      return cover == kAllKeys ? View::kAll : View::kPart;
    }
    const Interval* intervals = job_.plan->intervals.data() + span.interval;
    uint64_t some = 0, every = kAllKeys;
    for (int i = 0; i < tile_.rows; ++i) {
      masks[i] = cover & BitRange(origin + intervals[i].lo, origin + intervals[i].hi);
      some |= masks[i];
      every &= masks[i];
    }
    if (some == 0) return View::kNone;
    return every == kAllKeys ? View::kAll : View::kPart;
  }

  const VectorOps& ops_;
  const TileJob& job_;
  const Call& call_;
  const Tile& tile_;
  const int head_;
  const Item* const next_;
  int blocks_ = 0;
  TileScratch scratch_;
  bool gathered_ = false;
  const float* q_add_ = nullptr;
};

}  // namespace

size_t TileScratchBytes(const Plan& plan, const Call& call, DType panels) {
  return CarveScratch(plan, call, panels, nullptr).bytes;
}

void RunTile(const VectorOps& ops, const TileJob& job, const Item& item, std::byte* scratch) {
  TileWalk(ops, job, item, scratch).Run();
}

void PackWithOps(const VectorOps& ops, const PackBlock& request) {
  const KvLayout& layout = *request.layout;
  PackWork work;
  work.k = request.k;
  work.v = request.v;
  work.from_bfloat16 = request.from == DType::kBFloat16;
  work.k_row_stride = request.k_row_stride;
  work.v_row_stride = request.v_row_stride;
  work.rows = request.rows;
  work.dk = layout.Dk();
  work.dv = layout.Dv();
  work.padded_dk = layout.padded_dk();
  work.padded_dv = layout.padded_dv();
  work.k_block = request.k_block;
  work.v_block = request.v_block;
  ops.pack(work);
}

}  // namespace longview::kernels
