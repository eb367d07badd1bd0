// The 64 outputs of one unit, rows in groups that keep their sums in registers. Included by
// instruction set files after their simd header; they define
//   kManyRows, kManyWidth   rows, and registers of 16 outputs, of a full group
//   LowHalves, HighHalves   the first and the second bfloat16 of sixteen pairs as floats
#pragma once

#include "kernels/dense/row_product_ops.h"

namespace longview::kernels {
namespace {

constexpr int kUnitWidth = kUnitOutputs / 16;

struct FloatPanel {
  static constexpr int kInputs = 1;  // Per word of 32 bits.

  template <int R, int N>
  static void Step(const float* words, const float* x, int64_t x_stride, V16 (&sum)[R][N]) {
    V16 w[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) w[i] = Load(words + i * 16);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const V16 input = Broadcast(x[r * x_stride]);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) sum[r][i] = Fma(input, w[i], sum[r][i]);
    }
  }
};

struct PairPanel {
  static constexpr int kInputs = 2;

  template <int R, int N>
  static void Step(const float* words, const float* x, int64_t x_stride, V16 (&sum)[R][N]) {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      const V16 pairs = Load(words + i * 16);
      const V16 low = LowHalves(pairs), high = HighHalves(pairs);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        sum[r][i] = Fma(Broadcast(x[r * x_stride]), low, sum[r][i]);
        sum[r][i] = Fma(Broadcast(x[r * x_stride + 1]), high, sum[r][i]);
      }
    }
  }
};

// Outputs [first, first + 16 N) of rows [row, row + R).
template <class Panel, int R, int N>
void MultiplyGroup(const RowUnit& unit, int64_t row, int first) {
  const float* x = unit.x + row * unit.x_stride;
  const float* words = static_cast<const float*>(unit.weights) + first;
  V16 sum[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) sum[r][i] = Zero();
  }
  for (int64_t i = 0; i < unit.in; i += Panel::kInputs, words += kUnitOutputs) {
    Panel::template Step<R, N>(words, x + i, unit.x_stride, sum);
  }
  float* y = unit.y + row * unit.y_stride + first;
  float last[16];
  for (int r = 0; r < R; ++r, y += unit.y_stride) {
    for (int i = 0; i < N; ++i) {
      const int left = unit.outputs - first - i * 16;
      if (left >= 16) {
        Store(y + i * 16, sum[r][i]);
        continue;
      }
      Store(last, sum[r][i]);
      for (int j = 0; j < left; ++j) y[i * 16 + j] = last[j];
    }
  }
}

template <class Panel, int R>
void MultiplyRowsOf(const RowUnit& unit, int64_t row) {
  constexpr int kWidth = R == 1 ? kUnitWidth : kManyWidth;
  for (int first = 0; first < unit.outputs; first += kWidth * 16) {
    MultiplyGroup<Panel, R, kWidth>(unit, row, first);
  }
}

// The last rows, fewer than a full group.
template <class Panel, int R>
void MultiplyRest(const RowUnit& unit, int64_t row) {
  if constexpr (R > 0) {
    if (unit.rows - row == R) return MultiplyRowsOf<Panel, R>(unit, row);
    MultiplyRest<Panel, R - 1>(unit, row);
  }
}

template <class Panel>
void MultiplyUnit(const RowUnit& unit) {
  int64_t row = 0;
  for (; row + kManyRows <= unit.rows; row += kManyRows) {
    MultiplyRowsOf<Panel, kManyRows>(unit, row);
  }
  MultiplyRest<Panel, kManyRows - 1>(unit, row);
}

}  // namespace
}  // namespace longview::kernels
