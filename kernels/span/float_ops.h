// Float products of a row group with a key block and a value block, and packing of float
// panels. Included by instruction set files after their simd header.
//
// The including file sets kWidth: registers of 16 floats that 6 rows can hold sums for.
#pragma once

#include "kernels/span/softmax_rows.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {
namespace {

constexpr int kGroup = 6;  // Rows: 6 x 4 sums leave room for 4 keys and a query in 32 registers.

// s[r][i * 16 ..] = q[r] . keys of panel i, for R rows and N panels. One chain over d.
template <int R, int N>
void ScorePanels(const float* q, int dk, const float* k, float* s) {
  V16 sum[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) sum[r][i] = Zero();
  }
#pragma GCC unroll 2
  for (int d = 0; d < dk; ++d) {
    V16 key[N];
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) key[i] = Load(k + (i * dk + d) * 16);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const V16 query = Broadcast(q[r * dk + d]);
#pragma GCC unroll 6
      for (int i = 0; i < N; ++i) sum[r][i] = Fma(query, key[i], sum[r][i]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) Store(s + r * kBlockKeys + i * 16, sum[r][i]);
  }
}

// o[r][i * 16 ..] += sum over keys of weight[r][key] * v[key][i * 16 ..].
template <int R, int N>
void ValueColumns(const float* weights, const float* v, int keys, int dv, float* o) {
  V16 sum[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) sum[r][i] = Load(o + r * dv + i * 16);
  }
#pragma GCC unroll 2
  for (int j = 0; j < keys; ++j) {
    V16 value[N];
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) value[i] = Load(v + j * dv + i * 16);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const V16 weight = Broadcast(weights[r * kBlockKeys + j]);
#pragma GCC unroll 6
      for (int i = 0; i < N; ++i) sum[r][i] = Fma(weight, value[i], sum[r][i]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) Store(o + r * dv + i * 16, sum[r][i]);
  }
}

template <int N>
void ScoreRows(int rows, const float* q, int dk, const float* k, float* s) {
  switch (rows) {
    case 1:
      return ScorePanels<1, N>(q, dk, k, s);
    case 2:
      return ScorePanels<2, N>(q, dk, k, s);
    case 3:
      return ScorePanels<3, N>(q, dk, k, s);
    case 4:
      return ScorePanels<4, N>(q, dk, k, s);
    case 5:
      return ScorePanels<5, N>(q, dk, k, s);
    default:
      return ScorePanels<kGroup, N>(q, dk, k, s);
  }
}

template <int N>
void ValueRows(int rows, const float* weights, const float* v, int keys, int dv, float* o) {
  switch (rows) {
    case 1:
      return ValueColumns<1, N>(weights, v, keys, dv, o);
    case 2:
      return ValueColumns<2, N>(weights, v, keys, dv, o);
    case 3:
      return ValueColumns<3, N>(weights, v, keys, dv, o);
    case 4:
      return ValueColumns<4, N>(weights, v, keys, dv, o);
    case 5:
      return ValueColumns<5, N>(weights, v, keys, dv, o);
    default:
      return ValueColumns<kGroup, N>(weights, v, keys, dv, o);
  }
}

// Calls body.template operator()<n>() with n = count, 1 <= count <= kWidth.
template <class Body>
inline void WithWidth(int count, Body body) {
  if constexpr (kWidth == 1) {
    body.template operator()<1>();
  } else {
    switch (count) {
      case 1:
        return body.template operator()<1>();
      case 2:
        return body.template operator()<2>();
      case 3:
        return body.template operator()<3>();
      default:
        return body.template operator()<4>();
    }
  }
}

struct FloatOps {
  using Weights = FloatWeights;
  static constexpr int kGroupRows = kGroup;
  static constexpr int kPanelStep = 1;

  static void Scores(const TileState& t, const BlockWork& block, int row0, int rows, int first,
                     int panels) {
    const float* q = static_cast<const float*>(t.q) + row0 * t.dk;
    const float* k = reinterpret_cast<const float*>(block.k);
    float* s = t.s + row0 * kBlockKeys;
    for (int i = first; i < first + panels; i += kWidth) {
      WithWidth(Least(kWidth, first + panels - i),
                [&]<int N>() { ScoreRows<N>(rows, q, t.dk, k + i * t.dk * 16, s + i * 16); });
    }
  }

  static void Values(const TileState& t, const BlockWork& block, int row0, int rows, int key0,
                     int key1) {
    const float* weights = t.s + row0 * kBlockKeys + key0;
    const float* v = reinterpret_cast<const float*>(block.v) + key0 * t.dv;
    float* o = t.o + row0 * t.dv;
    for (int d = 0; d < t.dv; d += 16 * kWidth) {
      WithWidth(Least(kWidth, (t.dv - d) / 16),
                [&]<int N>() { ValueRows<N>(rows, weights, v + d, key1 - key0, t.dv, o + d); });
    }
  }
};

void Dots(const float* q, const float* panel, int dk, float* out) {
  for (int i = 0; i < 4; i += kWidth) {
    ScorePanels<1, kWidth>(q, dk, panel + i * dk * 16, out + i * 16);
  }
}

}  // namespace
}  // namespace longview::kernels
