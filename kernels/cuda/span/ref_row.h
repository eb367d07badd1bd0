// The obviously right kernel: one thread makes one row of one head, key by key, in fp32. It takes
// every call that the contract allows, fp32 tensors included; the fast kernels are held to it.
//
// A function over plain data: thread-safe, on either side.
#pragma once

#include "kernels/cuda/span/block_view.h"
#include "kernels/cuda/span/state_math.h"

namespace longview::kernels::cuda {

// The running softmax of one row.
struct RefState {
  float m = -INFINITY;
  float l = 0.0f;
  float o[kMaxHeadDim];
};

LONGVIEW_HD inline float RefScore(const PlanView& plan, const SpanCall& call, const Tile& tile,
                                  const Span& span, int row, int head, int64_t k0, int32_t key) {
  const SpanSource& source = call.sources[span.source];
  const int64_t q_row = QueryRow(tile, row);
  const int64_t q0 = q_row * call.q_row_stride + head * call.q_head_stride;
  float dot = 0.0f;
  for (int d = 0; d < call.Dk; ++d) {
    float q = LoadElement(call.q, call.element, q0 + d);
    if (source.q_add != nullptr) q += source.q_add[head * call.Dk + d];
    dot += q * LoadElement(source.k, call.element, k0 + d);
  }
  float score = call.scale * dot;
  if (span.bias < 0) return score;
  const Bias& bias = plan.biases[span.bias];
  const SpanTable& table = call.tables[bias.id];
  const int64_t entry = RowEntry(bias, row) + static_cast<int64_t>(bias.key_mul) * key;
  if (bias.kind == kAdded) return score + AddedBias(table, entry, head);
  return score + call.scale * DottedBias(call, table, q_row, entry, head);
}

LONGVIEW_HD inline void RefAddKey(const SpanCall& call, const SpanSource& source, int64_t v0,
                                  float score, RefState* state) {
  const float x = score * kLog2E;
  if (x > state->m) {
    const float keep = Exp2Below(state->m, x);
    state->l *= keep;
    for (int d = 0; d < call.Dv; ++d) state->o[d] *= keep;
    state->m = x;
  }
  const float weight = Exp2Below(x, state->m);
  state->l += weight;
  for (int d = 0; d < call.Dv; ++d) {
    state->o[d] += weight * LoadElement(source.v, call.element, v0 + d);
  }
}

LONGVIEW_HD inline void RefStore(const SpanCall& call, const Tile& tile, int row, int head,
                                 const RefState& state) {
  if (tile.part >= 0) {
    const int64_t slot = PartSlot(tile, head, row);
    call.part_m[slot] = state.m;
    call.part_l[slot] = state.l;
    for (int d = 0; d < call.Dv; ++d) call.part_o[slot * call.part_stride + d] = state.o[d];
    return;
  }
  const int64_t at = QueryRow(tile, row) * call.out_row_stride + head * call.out_head_stride;
  const float share = Share(state.l);
  for (int d = 0; d < call.Dv; ++d) {
    StoreElement(call.out, call.element, at + d, state.l > 0.0f ? state.o[d] * share + 0.0f : 0.0f);
  }
}

// Row `row` of the item's tile, from queries to output or unfinished state.
LONGVIEW_HD inline void RefRow(const PlanView& plan, const SpanCall& call, const Item& item,
                               int row) {
  const Tile& tile = plan.tiles[item.tile];
  const int kv_head = item.head / call.kv_group;
  RefState state;
  for (int d = 0; d < call.Dv; ++d) state.o[d] = 0.0f;
  BlockWalk walk(plan, tile);
  for (BlockPlace place = walk.Next(); place.span >= 0; place = walk.Next()) {
    const Span& span = plan.spans[place.span];
    const uint64_t keys = RowKeys(plan, span, place.block, SpanKeys(plan, span, place.block), row);
    for (int j = 0; j < kBlockSlots; ++j) {
      if ((keys >> j & 1) == 0) continue;
      const int64_t slot = static_cast<int64_t>(place.block) * kBlockSlots + j;
      const SpanSource& source = call.sources[span.source];
      const KeyPlace at = PlaceOfSlot(plan, source, span.source, tile.seq, slot, kv_head);
      const float score = RefScore(plan, call, tile, span, row, item.head, at.k,
                                   static_cast<int32_t>(slot - span.key0));
      RefAddKey(call, source, at.v, score, &state);
    }
  }
  RefStore(call, tile, row, item.head, state);
}

}  // namespace longview::kernels::cuda
