// The obviously right kernel: one thread makes one row of one head, key by key, in fp32. It takes
// every call that the contract allows, fp32 tensors included; the fast kernels are held to it.
//
// Plain data: thread-safe, on either side.
#pragma once

#include "kernels/cuda/span/state_math.h"
#include "kernels/cuda/span/tile_head.h"

namespace longview::kernels::cuda {

class RefRow : private TileHead {
 public:
  using TileHead::TileHead;

  // Row `row` of the item's tile, from queries to output or unfinished state.
  LONGVIEW_HD void Run(int row) const {
    State state;
    for (int d = 0; d < call_.Dv; ++d) state.o[d] = 0.0f;
    BlockWalk walk(plan_, tile_);
    for (BlockPlace place = walk.Next(); place.span >= 0; place = walk.Next()) {
      const Span& span = plan_.spans[place.span];
      const uint64_t keys =
          RowKeys(plan_, span, place.block, SpanKeys(plan_, span, place.block), row);
      for (int j = 0; j < kBlockSlots; ++j) {
        if ((keys >> j & 1) == 0) continue;
        const int64_t slot = static_cast<int64_t>(place.block) * kBlockSlots + j;
        const SpanSource& source = call_.sources[span.source];
        const KeyPlace at = PlaceOfSlot(plan_, source, span.source, tile_.seq, slot, kv_head_);
        AddKey(source, at.v, Score(span, row, at.k, static_cast<int32_t>(slot - span.key0)),
               &state);
      }
    }
    Store(row, state);
  }

 private:
  // The running softmax of the row.
  struct State {
    float m = -INFINITY;
    float l = 0.0f;
    float o[kMaxHeadDim];
  };

  LONGVIEW_HD float Score(const Span& span, int row, int64_t k0, int32_t key) const {
    const SpanSource& source = call_.sources[span.source];
    float dot = 0.0f;
    for (int d = 0; d < call_.Dk; ++d) {
      float q = LoadElement(call_.q, call_.element, QueryAt(row) + d);
      if (source.q_add != nullptr) q += source.q_add[head_ * call_.Dk + d];
      dot += q * LoadElement(source.k, call_.element, k0 + d);
    }
    const float score = call_.scale * dot;
    return span.bias < 0 ? score : score + KeyBias(span, key, row);
  }

  LONGVIEW_HD void AddKey(const SpanSource& source, int64_t v0, float score, State* state) const {
    const float x = score * kLog2E;
    if (x > state->m) {
      const float keep = Exp2Below(state->m, x);
      state->l *= keep;
      for (int d = 0; d < call_.Dv; ++d) state->o[d] *= keep;
      state->m = x;
    }
    const float weight = Exp2Below(x, state->m);
    state->l += weight;
    for (int d = 0; d < call_.Dv; ++d) {
      state->o[d] += weight * LoadElement(source.v, call_.element, v0 + d);
    }
  }

  LONGVIEW_HD void Store(int row, const State& state) const {
    if (tile_.part >= 0) {
      const int64_t slot = PartSlot(row);
      call_.part_m[slot] = state.m;
      call_.part_l[slot] = state.l;
      for (int d = 0; d < call_.Dv; ++d) call_.part_o[slot * call_.part_stride + d] = state.o[d];
      return;
    }
    const float share = Share(state.l);
    for (int d = 0; d < call_.Dv; ++d) {
      StoreElement(call_.out, call_.element, OutAt(row) + d,
                   state.l == 0.0f ? 0.0f : state.o[d] * share + 0.0f);
    }
  }
};

}  // namespace longview::kernels::cuda
