// LayerNorm of a sum, a block per row: a residual stream and what a linear added to it. The sum and
// the norm's place are functions of the arguments' type, which folders overload beside their
// programs.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/row_moments.h"
#include "kernels/cuda/common_rows/rows_api.h"

namespace longview::kernels::cuda {

// Column i of the row before its norm; y and bias may be null.
template <typename T, typename RowArgs>
LONGVIEW_HD inline float SummedColumn(const RowArgs& args, int64_t row, int i) {
  const int64_t at = row * args.width + i;
  const float bias = args.bias == nullptr ? 0.0f : args.bias[i];
  const float y = args.y == nullptr ? 0.0f : Widen(static_cast<const T*>(args.y)[at]);
  return (args.x[at] + bias) + y;
}

// Writes column i after the norm: into x, and into the copy if there is one.
template <typename T, typename RowArgs>
LONGVIEW_HD inline void WriteColumn(const RowArgs& args, int64_t row, int i, float value) {
  const int64_t at = row * args.width + i;
  args.x[at] = value;
  if (args.copy != nullptr) Narrow(value, static_cast<T*>(args.copy) + at);
}

// `RowArgs` are rows with x, norm and width, T is the element type of their tensors.
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
    if (phase < RowMoments::kPhases) {
      shared.moments.Phase(phase, thread, args.width, [&](int i) {
        if (phase == 0) x[i] = SummedColumn<T>(args, block.x, i);
        return x[i];
      });
      return;
    }
    const NormedRow normed(args.norm, shared.moments, args.width);
    for (int i = thread; i < args.width; i += kThreads) {
      WriteColumn<T>(args, block.x, i, normed.At(i, x[i]));
    }
  }
};

}  // namespace longview::kernels::cuda
