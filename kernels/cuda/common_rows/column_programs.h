// Rows whose columns do not look at each other: biases, activations, copies. A block takes a run of
// columns of one row.
#pragma once

#include <cmath>

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/rows_api.h"

namespace longview::kernels::cuda {

LONGVIEW_HD inline float Activate(RowActivation activation, float x) {
  switch (activation) {
    case RowActivation::kNone:
      return x;
    case RowActivation::kGelu:
      return 0.5f * x * (1.0f + erff(x * 0.707106781f));
    case RowActivation::kGeluTanh:
      return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
    case RowActivation::kRelu:
      return x < 0.0f ? 0.0f : x;
    case RowActivation::kSilu:
      return x / (1.0f + expf(-x));
    case RowActivation::kTanh:
      return tanhf(x);
    case RowActivation::kQuickGelu:
      return x / (1.0f + expf(-1.702f * x));
  }
  return x;
}

// Programs that treat the elements of rows one by one: `Each` has Args, Rows, Columns and
// Element(args, row, column).
template <typename Each>
struct ElementProgram {
  using Args = typename Each::Args;
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 4;
  static constexpr int kColumns = kThreads * kPerThread;  // Per block.

  struct Thread {};
  struct Shared {};

  LONGVIEW_HD static Grid GridOf(const Args& args) {
    return {Each::Rows(args), (Each::Columns(args) + kColumns - 1) / kColumns};
  }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 1; }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int, int thread, Thread&, Shared&) {
    const int columns = Each::Columns(args);
    for (int i = 0; i < kPerThread; ++i) {
      const int column = block.y * kColumns + i * kThreads + thread;
      if (column < columns) Each::Element(args, block.x, column);
    }
  }
};

// Base of elements whose arguments name their numbers of rows and columns themselves.
template <typename Of>
struct ElementsOf {
  using Args = Of;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.rows; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.columns; }
};

template <typename T>
struct BiasElements : ElementsOf<BiasRows> {
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    T* y = static_cast<T*>(args.y) + row * args.columns + column;
    Narrow(Activate(args.activation, Widen(*y) + args.bias[column]), y);
  }
};

template <typename T>
struct WidenElements : ElementsOf<WidenRows> {
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const int64_t at = row * args.columns + column;
    args.out[at] = Widen(static_cast<const T*>(args.y)[at]) + args.bias[column];
  }
};

// An element is four bytes.
struct CopyElements : ElementsOf<CopyRows> {
  LONGVIEW_HD static int Columns(const Args& args) { return args.row_bytes / 4; }
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const int64_t from = args.from == nullptr ? row : args.from[row];
    const int64_t to = args.to == nullptr ? row : args.to[row];
    if (from < 0 || to < 0) return;
    auto* out = static_cast<uint32_t*>(args.out) + to * (args.out_stride / 4);
    out[column] = (static_cast<const uint32_t*>(args.in) + from * (args.in_stride / 4))[column];
  }
};

}  // namespace longview::kernels::cuda
