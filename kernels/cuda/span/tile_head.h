// One head of one tile, what an item of a plan stands for: where its rows' queries, outputs and
// unfinished states lie, and what its biases add. Every forward program is one.
//
// Reads plain data: thread-safe, on either side.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/block_view.h"

namespace longview::kernels::cuda {

// (q + dot_add) . R[entry], a plain chain over d; the query begins at element q0. Not inlined:
// kernels ask for it in many places. Nor a member: what it is called on would lie in memory.
[[gnu::noinline]] LONGVIEW_HD inline float DottedBias(const SpanCall& call, const SpanTable& table,
                                                      int64_t q0, int64_t entry, int head) {
  const int64_t r0 = head * table.head_stride + entry * table.entry_stride;
  float sum = 0.0f;
  for (int d = 0; d < call.Dk; ++d) {
    float q = LoadElement(call.q, call.element, q0 + d);
    if (table.dot_add != nullptr) q += table.dot_add[head * call.Dk + d];
    sum += q * LoadElement(table.data, table.element, r0 + d);
  }
  return sum;
}

class TileHead {
 public:
  // Borrows the plan and the call.
  LONGVIEW_HD TileHead(const PlanView& plan, const SpanCall& call, const Item& item)
      : plan_(plan),
        call_(call),
        tile_(plan.tiles[item.tile]),
        head_(item.head),
        kv_head_(item.head / call.kv_group) {}

  // First elements of a row's query and output.
  LONGVIEW_HD int64_t QueryAt(int row) const {
    return TokenRow(row) * call_.q_row_stride + head_ * call_.q_head_stride;
  }
  LONGVIEW_HD int64_t OutAt(int row) const {
    return TokenRow(row) * call_.out_row_stride + head_ * call_.out_head_stride;
  }

  LONGVIEW_HD const SpanSource& SourceOf(const BlockPlace& place) const {
    return call_.sources[plan_.spans[place.span].source];
  }

  // Place of the block's key `row`; {-1, -1} if the span does not have it.
  LONGVIEW_HD KeyPlace PlaceOfKey(const BlockPlace& place, int row) const {
    const Span& span = plan_.spans[place.span];
    const int64_t slot = static_cast<int64_t>(place.block) * kBlockSlots + row;
    if (slot < span.key0 || slot >= static_cast<int64_t>(span.key0) + span.keys) return {-1, -1};
    return PlaceOfSlot(plan_, SourceOf(place), span.source, tile_.seq, slot, kv_head_);
  }

  // Elements of a row of D columns from `column` on, eight at most; none of a row at -1.
  LONGVIEW_HD static int PieceElements(int64_t row, int column, int D) {
    const int elements = row < 0 ? 0 : D - column;
    return elements < 0 ? 0 : elements > 8 ? 8 : elements;
  }

  // Slot of a row's unfinished state. REQUIRES: the tile is a part.
  LONGVIEW_HD int64_t PartSlot(int row) const {
    return tile_.part + static_cast<int64_t>(head_ - tile_.head0) * tile_.rows + row;
  }

  // The bias that a table's entry adds to a score of the row.
  LONGVIEW_HD float EntryBias(const Bias& bias, int64_t entry, int row) const {
    const SpanTable& table = call_.tables[bias.id];
    if (bias.kind == kDotted) {
      return call_.scale * DottedBias(call_, table, QueryAt(row), entry, head_);
    }
    return static_cast<const float*>(table.data)[head_ * table.head_stride + entry];
  }

  // The bias of the span's key `key`, counted from its first. REQUIRES: the span has a bias.
  LONGVIEW_HD float KeyBias(const Span& span, int32_t key, int row) const {
    const Bias& bias = plan_.biases[span.bias];
    return EntryBias(bias, RowEntry(bias, row) + static_cast<int64_t>(bias.key_mul) * key, row);
  }

 protected:
  const PlanView& plan_;
  const SpanCall& call_;
  const Tile tile_;
  const int head_;
  const int kv_head_;

 private:
  LONGVIEW_HD int64_t TokenRow(int row) const {
    return tile_.row0 + static_cast<int64_t>(row) * tile_.row_step;
  }
};

}  // namespace longview::kernels::cuda
