// LayerNorm of a sum, a block per row: the embedding sum, or a residual stream and what a linear
// added to it.
#pragma once

#include <cmath>

#include "kernels/cuda/typed_element.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/rows/row_sum.h"
#include "kernels/cuda/rows/rows_api.h"

namespace longview::kernels::cuda {

// What is summed up: column i of the row, before its norm.
template <typename T>
LONGVIEW_HD inline float SummedColumn(const EmbedRows& args, int64_t row, int i) {
  const auto at = [&](const float* table, const int32_t* index) {
    return table[int64_t{index[row]} * args.width + i];
  };
  return (at(args.words, args.ids) + at(args.positions, args.places)) + at(args.types, args.kinds);
}

template <typename T>
LONGVIEW_HD inline float SummedColumn(const ResidualRows& args, int64_t row, int i) {
  const int64_t at = row * args.width + i;
  return (args.x[at] + args.bias[i]) + Widen(static_cast<const T*>(args.y)[at]);
}

// `RowArgs` is EmbedRows or ResidualRows, T the element type of their tensors.
template <typename RowArgs, typename T>
struct NormProgram {
  using Args = RowArgs;
  static constexpr int kThreads = kRowThreads;

  struct Thread {
    float mean;
  };
  struct Shared {
    RowSum sum;
    RowSum squares;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.rows, 1}; }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 5; }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread& mine,
                                Shared& shared) {
    float* x = args.x + block.x * args.width;
    switch (phase) {
      case 0:
        return shared.sum.Give(thread, Sum(args, block.x, x, thread));
      case 1:
        return shared.sum.Gather(thread);
      case 2:
        mine.mean = shared.sum.Total() / static_cast<float>(args.width);
        return shared.squares.Give(thread, Squares(args, x, mine.mean, thread));
      case 3:
        return shared.squares.Gather(thread);
      default:
        Write(args, block.x, mine.mean, shared.squares.Total(), thread);
    }
  }

 private:
  // The sum replaces x; a thread's columns are its own throughout.
  LONGVIEW_HD static float Sum(const Args& args, int64_t row, float* x, int thread) {
    float total = 0;
    for (int i = thread; i < args.width; i += kThreads) {
      const float value = SummedColumn<T>(args, row, i);
      x[i] = value;
      total += value;
    }
    return total;
  }

  LONGVIEW_HD static float Squares(const Args& args, const float* x, float mean, int thread) {
    float total = 0;
    for (int i = thread; i < args.width; i += kThreads) {
      const float distance = x[i] - mean;
      total += distance * distance;
    }
    return total;
  }

  LONGVIEW_HD static void Write(const Args& args, int64_t row, float mean, float squares,
                                int thread) {
    const float variance = squares / static_cast<float>(args.width);
    const float factor = 1.0f / sqrtf(variance + args.norm.eps);
    float* x = args.x + row * args.width;
    T* copy = args.copy == nullptr ? nullptr : static_cast<T*>(args.copy) + row * args.width;
    for (int i = thread; i < args.width; i += kThreads) {
      const float value = (x[i] - mean) * factor * args.norm.gamma[i] + args.norm.beta[i];
      x[i] = value;
      if (copy != nullptr) Narrow(value, copy + i);
    }
  }
};

}  // namespace longview::kernels::cuda
