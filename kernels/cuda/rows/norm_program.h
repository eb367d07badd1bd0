// LayerNorm of a sum, a block per row: the embedding sum, or a residual stream and what a linear
// added to it.
#pragma once

#include "kernels/cuda/program.h"
#include "kernels/cuda/rows/row_moments.h"
#include "kernels/cuda/rows/rows_api.h"
#include "kernels/cuda/typed_element.h"

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

  struct Thread {};
  struct Shared {
    RowMoments moments;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.rows, 1}; }
  LONGVIEW_HD static int Phases(const Args&, Block) { return RowMoments::kPhases + 1; }

  // The sum replaces x; a thread's columns are its own throughout.
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    float* const x = args.x + block.x * args.width;
    if (phase == RowMoments::kPhases) return Write(args, block.x, x, thread, shared.moments);
    shared.moments.Phase(phase, thread, args.width, [&](int i) {
      if (phase == 0) x[i] = SummedColumn<T>(args, block.x, i);
      return x[i];
    });
  }

 private:
  LONGVIEW_HD static void Write(const Args& args, int64_t row, float* x, int thread,
                                const RowMoments& moments) {
    const NormedRow normed(args.norm, moments, args.width);
    T* const copy = args.copy == nullptr ? nullptr : static_cast<T*>(args.copy) + row * args.width;
    for (int i = thread; i < args.width; i += kThreads) {
      x[i] = normed.At(i, x[i]);
      if (copy != nullptr) Narrow(x[i], copy + i);
    }
  }
};

}  // namespace longview::kernels::cuda
