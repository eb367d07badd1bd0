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

// Prefetches weights into cache ahead of use, which the hardware does not do across pages. A
// single pass over a unit runs at the pace of memory and draws 4 KiB ahead of itself, at the end of
// the unit from the next one, which the same thread mostly takes. Several passes share the drawing
// of the whole next unit, so that memory is read while any of them multiplies.
struct Drawing {
  const float* line = nullptr;
  int lines = 0;  // Per step: 0, 1, 2 or 4.

  // The prefetch of pass `pass` of `passes`, each of `steps` steps.
  static Drawing Of(const float* unit, int64_t steps, int64_t pass, int64_t passes) {
    if (passes == 1) return {unit + 16 * kUnitOutputs, kUnitWidth};
    const int lines = passes < kUnitWidth ? 2 : 1;
    if (pass * lines >= kUnitWidth) return {};
    return {unit + steps * kUnitOutputs + pass * lines * steps * 16, lines};
  }

  void Step() {
    if (lines == kUnitWidth) {
#pragma GCC unroll 4
      for (int i = 0; i < kUnitWidth; ++i) __builtin_prefetch(line + i * 16);
    } else if (lines == 2) {
      __builtin_prefetch(line, 0, 2);
      __builtin_prefetch(line + 16, 0, 2);
    } else if (lines == 1) {
      __builtin_prefetch(line, 0, 2);
    }
    line += lines * 16;
  }
};

// Outputs [first, first + 16 N) of rows [row, row + R).
template <class Panel, int R, int N>
void MultiplyGroup(const RowUnit& unit, int64_t row, int first, Drawing drawing) {
  const float* x = unit.x + row * unit.x_stride;
  const float* words = static_cast<const float*>(unit.weights) + first;
  V16 sum[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) sum[r][i] = Zero();
  }
  for (int64_t i = 0; i < unit.in; i += Panel::kInputs, words += kUnitOutputs) {
    drawing.Step();
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

// Rows of one group, and which it is of how many.
struct RowGroup {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t group = 0;
  int64_t groups = 0;
};

template <class Panel, int R>
void MultiplyRowsOf(const RowUnit& unit, const RowGroup& of) {
  if constexpr (R > 1) {
    if (of.rows < R) return MultiplyRowsOf<Panel, R - 1>(unit, of);
  }
  constexpr int kWidth = R == 1 ? kUnitWidth : kManyWidth, kParts = kUnitWidth / kWidth;
  for (int part = 0; part < kParts && part * kWidth * 16 < unit.outputs; ++part) {
    const Drawing drawing =
        Drawing::Of(static_cast<const float*>(unit.weights), unit.in / Panel::kInputs,
                    of.group * kParts + part, of.groups * kParts);
    MultiplyGroup<Panel, R, kWidth>(unit, of.row, part * kWidth * 16, drawing);
  }
}

// Groups of about equal size: a small last one would wait for memory, a full first one not.
template <class Panel>
void MultiplyUnit(const RowUnit& unit) {
  RowGroup group;
  group.groups = (unit.rows + kManyRows - 1) / kManyRows;
  for (; group.group < group.groups; ++group.group) {
    group.row = unit.rows * group.group / group.groups;
    group.rows = unit.rows * (group.group + 1) / group.groups - group.row;
    MultiplyRowsOf<Panel, kManyRows>(unit, group);
  }
}

}  // namespace
}  // namespace longview::kernels
