// A generating model's residual stream, and what follows its first product: a block per row.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/column_programs.h"
#include "kernels/cuda/common_rows/norm_program.h"
#include "kernels/cuda/common_rows/row_moments.h"
#include "kernels/cuda/decoder_rows/token_api.h"

namespace longview::kernels::cuda {

// A stream without a norm; with one it is NormProgram<StreamRows, T>.
template <typename T>
struct StreamElements {
  using Args = StreamRows;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.rows; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.width; }
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    WriteColumn<T>(args, row, column, SummedColumn<T>(args, row, column));
  }
};

// Sums come first: the row is written in place.
template <typename T>
struct ProjectProgram {
  using Args = ProjectedRows;
  static constexpr int kThreads = kRowThreads;

  struct Thread {};
  struct Shared {
    RowMoments moments[2];  // For keys, for values.
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.rows, 1}; }
  LONGVIEW_HD static int Phases(const Args&, Block) { return RowMoments::kPhases + 1; }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    T* const y = static_cast<T*>(args.y) + block.x * (3 * args.width + args.columns);
    for (int part = 0; part < 2; ++part) {
      RowMoments& moments = shared.moments[part];
      if (phase == RowMoments::kPhases) {
        Write(args, block.x, y, part, thread, moments);
      } else {
        moments.Phase(phase, thread, args.width, [&](int i) { return At(args, y, part, i); });
      }
    }
    if (phase == RowMoments::kPhases) WriteRest(args, block.x, y, thread);
  }

 private:
  // Column i of keys (part 0) or values, with its bias.
  LONGVIEW_HD static float At(const Args& args, const T* y, int part, int i) {
    const int column = (1 + part) * args.width + i;
    return Widen(y[column]) + args.bias[column];
  }

  LONGVIEW_HD static void Write(const Args& args, int64_t row, T* y, int part, int thread,
                                const RowMoments& moments) {
    const NormedRow normed(args.norm, moments, args.width);
    T* const out = static_cast<T*>(part == 0 ? args.keys : args.values) + row * args.width;
    for (int i = thread; i < args.width; i += kThreads) {
      const float value = At(args, y, part, i);
      Narrow(normed.At(i, value), out + i);
      Narrow(value, y + (1 + part) * args.width + i);
    }
  }

  LONGVIEW_HD static void WriteRest(const Args& args, int64_t row, T* y, int thread) {
    for (int i = thread; i < args.width; i += kThreads) Narrow(Widen(y[i]) + args.bias[i], y + i);
    for (int c = thread; c < args.columns; c += kThreads) {
      const int column = 3 * args.width + c;
      args.scores[row * args.columns + c] = Widen(y[column]) + args.bias[column];
    }
  }
};

}  // namespace longview::kernels::cuda
