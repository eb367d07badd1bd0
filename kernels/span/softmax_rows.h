// Online softmax of one row over one block, and the walk over a block's rows. Included by
// instruction set files after their simd header; see vector_ops.h for the terms.
//
// A masked key gets weight 0, which adds nothing to any sum, and no row looks at another's
// scores: so a row's bits depend neither on its tile nor on which masked keys were computed.
#pragma once

#include "kernels/span/vector_ops.h"

namespace longview::kernels {
namespace {

inline int Least(int a, int b) { return a < b ? a : b; }

// Weights stay float, in place.
struct FloatWeights {
  static V16 Exp(V16 x) { return Exp2(x); }
  static void Put(float* scores, int panel, V16 p) { Store(scores + panel * 16, p); }
};

// Moves a row's reference up to `top`, its largest score yet.
inline void RaiseReference(const TileState& t, int row, float top) {
  const V16 factor = Exp2(Broadcast(t.m[row] - top));
  float* l = t.l + row * 16;
  Store(l, Mul(Load(l), factor));
  float* o = t.o + row * t.dv;
  for (int d = 0; d < t.dv; d += 16) Store(o + d, Mul(Load(o + d), factor));
  t.m[row] = top;
}

// Turns raw products of the key panels [first, first + N) into weights, in place.
template <class Weights, int N, bool kMasked, bool kBiased>
inline void SoftmaxPanels(const TileState& t, int row, int first, uint64_t mask,
                          const float* bias) {
  float* s = t.s + row * kBlockKeys;
  const V16 scale = Broadcast(t.scale);
  V16 x[N];
  for (int i = 0; i < N; ++i) {
    x[i] = Mul(Load(s + (first + i) * 16), scale);
    if (kBiased) x[i] = Add(x[i], Load(bias + (first + i) * 16));
    if (kMasked) x[i] = MaskScores(static_cast<uint32_t>(mask >> ((first + i) * 16)), x[i]);
  }
  V16 top = x[0];
  for (int i = 1; i < N; ++i) top = Max(top, x[i]);
  if (AnyAbove(top, Broadcast(t.m[row] + kRescaleAbove))) RaiseReference(t, row, MaxLane(top));
  const V16 m = Broadcast(t.m[row]);
  V16 sum = Load(t.l + row * 16);
  for (int i = 0; i < N; ++i) {
    const V16 p = Weights::Exp(Sub(x[i], m));
    sum = Add(sum, p);
    Weights::Put(s, first + i, p);
  }
  Store(t.l + row * 16, sum);
}

template <class Weights, bool kMasked, bool kBiased>
inline void SoftmaxRow(const TileState& t, int row, int first, int panels, uint64_t mask,
                       const float* bias) {
  switch (panels) {
    case 1:
      return SoftmaxPanels<Weights, 1, kMasked, kBiased>(t, row, first, mask, bias);
    case 2:
      return SoftmaxPanels<Weights, 2, kMasked, kBiased>(t, row, first, mask, bias);
    case 3:
      return SoftmaxPanels<Weights, 3, kMasked, kBiased>(t, row, first, mask, bias);
    default:
      return SoftmaxPanels<Weights, 4, kMasked, kBiased>(t, row, 0, mask, bias);
  }
}

// Keys of a block that some row of a group sees, and whether every row sees all 64.
struct GroupView {
  uint64_t some = ~uint64_t{0};
  bool full = true;
};

inline GroupView ViewGroup(const BlockWork& block, int row0, int rows) {
  GroupView view;
  if (block.masks == nullptr) return view;
  uint64_t every = ~uint64_t{0};
  view.some = 0;
  for (int r = row0; r < row0 + rows; ++r) {
    view.some |= block.masks[r];
    every &= block.masks[r];
  }
  view.full = every == ~uint64_t{0};
  return view;
}

template <class Weights, bool kMasked, bool kBiased>
inline void SoftmaxGroup(const TileState& t, const BlockWork& block, int row0, int rows, int first,
                         int panels) {
  for (int r = row0; r < row0 + rows; ++r) {
    SoftmaxRow<Weights, kMasked, kBiased>(t, r, first, panels, kMasked ? block.masks[r] : 0,
                                          kBiased ? block.bias + r * kBlockKeys : nullptr);
  }
}

// Draws the rows' share of the next block into the second-level cache.
inline void PrefetchShare(const std::byte* block, int bytes, int row0, int rows, int all_rows) {
  const int begin = bytes / all_rows * row0, end = bytes / all_rows * (row0 + rows);
  for (int i = begin; i < end; i += 64) __builtin_prefetch(block + i, 0, 2);
}

// Adds a block to a tile, a group of rows at a time. Ops provides
//   kGroupRows, kPanelStep   rows per group; key panels come in multiples of kPanelStep
//   kPanelBytes              bytes of a panel element
//   Weights                  how weights are computed and stored
//   Scores(t, block, row0, rows, first, panels)   raw products of key panels into t.s; for a
//                                                 tile of one row draws the next block near
//   Values(t, block, row0, rows, key0, key1)      weights times values into t.o
template <class Ops>
void AddBlock(const TileState& t, const BlockWork& block) {
  using Weights = typename Ops::Weights;
  for (int row0 = 0; row0 < t.rows; row0 += Ops::kGroupRows) {
    const int rows = Least(Ops::kGroupRows, t.rows - row0);
    const GroupView view = ViewGroup(block, row0, rows);
    if (block.next_k != nullptr && t.rows > 1) {
      PrefetchShare(block.next_k, kBlockKeys * t.dk * Ops::kPanelBytes, row0, rows, t.rows);
      PrefetchShare(block.next_v, kBlockKeys * t.dv * Ops::kPanelBytes, row0, rows, t.rows);
    }
    if (view.some == 0) continue;
    const int key0 = __builtin_ctzll(view.some);
    const int key1 = 64 - __builtin_clzll(view.some);
    constexpr int kStepKeys = 16 * Ops::kPanelStep;
    const int first = key0 / kStepKeys * Ops::kPanelStep;
    const int panels = (key1 + kStepKeys - 1) / kStepKeys * Ops::kPanelStep - first;
    Ops::Scores(t, block, row0, rows, first, panels);
    if (block.bias != nullptr) {
      if (view.full) {
        SoftmaxGroup<Weights, false, true>(t, block, row0, rows, first, panels);
      } else {
        SoftmaxGroup<Weights, true, true>(t, block, row0, rows, first, panels);
      }
    } else if (view.full) {
      SoftmaxGroup<Weights, false, false>(t, block, row0, rows, first, panels);
    } else {
      SoftmaxGroup<Weights, true, false>(t, block, row0, rows, first, panels);
    }
    Ops::Values(t, block, row0, rows, key0, key1);
  }
}

}  // namespace
}  // namespace longview::kernels
