// Keys that a row sees of each block, and their places in memory: the walk over a tile, shared by
// every kernel of this folder and by their tests.
//
// A tile's spans are walked in order, each block by block on its source's own grid of 64 slots.
// Where a tile begins or ends, and who shares the batch, changes no block border: this is what
// keeps a row's bits its own (README.md of kernels/, "Why a row's bits never change").
//
// Stateless functions over plain data: thread-safe, on either side.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/plan_image.h"
#include "kernels/cuda/span/span_call.h"

namespace longview::kernels::cuda {

inline constexpr uint64_t kAllKeys = ~uint64_t{0};

// Bits [lo, hi) of a word; none when hi <= lo. Bounds outside 0 .. 64 are clipped.
LONGVIEW_HD inline uint64_t KeyRange(int64_t lo, int64_t hi) {
  lo = lo < 0 ? 0 : lo;
  hi = hi > 64 ? 64 : hi;
  if (hi <= lo) return 0;
  return (kAllKeys >> (64 - (hi - lo))) << lo;
}

// One block of one span of a tile.
struct BlockPlace {
  int32_t span;   // Index into PlanView::spans; -1: the walk is over.
  int32_t block;  // Slot / 64.
};

// The walk over a tile's blocks. A value: both sides step it the same way.
class BlockWalk {
 public:
  LONGVIEW_HD BlockWalk(const PlanView& plan, const Tile& tile)
      : plan_(plan), span_(tile.span0), end_(tile.span0 + tile.spans), block_(0) {
    Enter();
  }

  // The next block, then the one after it.
  LONGVIEW_HD BlockPlace Next() {
    if (span_ >= end_) return {-1, 0};
    const BlockPlace place{span_, block_};
    if (++block_ >= last_) {
      ++span_;
      Enter();
    }
    return place;
  }

 private:
  // Goes to the first block of the next span that has keys.
  LONGVIEW_HD void Enter() {
    for (; span_ < end_; ++span_) {
      const Span& span = plan_.spans[span_];
      if (span.keys <= 0) continue;
      block_ = span.key0 / kBlockSlots;
      last_ = (span.key0 + span.keys - 1) / kBlockSlots + 1;
      return;
    }
  }

  const PlanView& plan_;
  int32_t span_;
  int32_t end_;
  int32_t block_;
  int32_t last_ = 0;
};

// Keys of the block that the span has at all: inside its run and no holes.
LONGVIEW_HD inline uint64_t SpanKeys(const PlanView& plan, const Span& span, int32_t block) {
  const int64_t origin = span.key0 - static_cast<int64_t>(block) * kBlockSlots;
  uint64_t keys = KeyRange(origin, origin + span.keys);
  if (span.holes != 0) keys &= plan.valid[plan.sources[span.source].valid0 + block];
  return keys;
}

// The part of `keys` that row `row` of the tile sees.
LONGVIEW_HD inline uint64_t RowKeys(const PlanView& plan, const Span& span, int32_t block,
                                    uint64_t keys, int row) {
  if (span.interval < 0) return keys;
  const Interval seen = plan.intervals[span.interval + row];
  const int64_t origin = span.key0 - static_cast<int64_t>(block) * kBlockSlots;
  return keys & KeyRange(origin + seen.lo, origin + seen.hi);
}

// Index of the cell, [64][pitch], that holds a block of slots of a source in device blocks.
LONGVIEW_HD inline int64_t CellOfBlock(const SpanSource& source, int32_t seq, int64_t block,
                                       int32_t kv_head) {
  if (source.layout == Layout::kPaged) {
    block = source.block_table[source.seq_offset[seq] + block];
  }
  return block * source.kv_heads + kv_head;
}

// First elements of a slot's key and value, in elements from the source's k and v; -1: no row fills
// the slot.
struct KeyPlace {
  int64_t k;
  int64_t v;
};

LONGVIEW_HD inline KeyPlace PlaceOfSlot(const PlanView& plan, const SpanSource& source,
                                        int32_t source_index, int32_t seq, int64_t slot,
                                        int32_t kv_head) {
  if (source.layout == Layout::kRows) {
    const int64_t row = plan.slot_rows[plan.sources[source_index].slot_row0 + slot];
    if (row < 0) return {-1, -1};
    return {row * source.k_row_stride + kv_head * source.k_head_stride,
            row * source.v_row_stride + kv_head * source.v_head_stride};
  }
  const int64_t cell = CellOfBlock(source, seq, slot / kBlockSlots, kv_head);
  const int64_t row = slot % kBlockSlots;
  return {cell * source.k_head_stride + row * source.k_row_stride,
          cell * source.v_head_stride + row * source.v_row_stride};
}

// Table entry that row `row` of the tile reads for the key with span coordinate 0.
LONGVIEW_HD inline int64_t RowEntry(const Bias& bias, int row) {
  return bias.base + static_cast<int64_t>(bias.row_mul) * ((row + bias.row_phase) / bias.row_div);
}

}  // namespace longview::kernels::cuda
