// The residual stream of text encoders: how it begins, what a pre-norm layer adds to it, and rows
// that something is added to by their place.
#pragma once

#include "kernels/cuda/encoder/encoder_api.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/rows/column_programs.h"
#include "kernels/cuda/rows/row_moments.h"
#include "kernels/cuda/typed_element.h"

namespace longview::kernels::cuda {

// Where the arguments say themselves how many rows there are, and how wide.
template <typename Of>
struct WideRowsOf {
  using Args = Of;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.rows; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.width; }
};

struct EmbedSumElements : WideRowsOf<EmbedSums> {
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const auto at = [&](const float* table, const int32_t* index) {
      return table == nullptr ? 0.0f : table[int64_t{index[row]} * args.width + column];
    };
    args.x[row * args.width + column] =
        (args.factor * at(args.words, args.ids) + at(args.positions, args.places)) +
        at(args.types, args.kinds);
  }
};

// A block per row.
template <typename T>
struct PrenormProgram {
  using Args = PrenormRows;
  static constexpr int kThreads = kRowThreads;

  struct Thread {};
  struct Shared {
    RowMoments moments;
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.rows, 1}; }
  LONGVIEW_HD static int Phases(const Args&, Block) { return RowMoments::kPhases + 1; }

  // A thread's columns are its own throughout.
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    float* const x = args.x + block.x * args.width;
    if (phase < RowMoments::kPhases) {
      shared.moments.Phase(phase, thread, args.width, [&](int i) {
        if (phase == 0) x[i] = Sum(args, block.x, i);
        return x[i];
      });
      return;
    }
    const NormedRow normed(args.norm, shared.moments, args.width);
    T* const out = static_cast<T*>(args.out) + block.x * args.width;
    for (int i = thread; i < args.width; i += kThreads) Narrow(normed.At(i, x[i]), out + i);
  }

 private:
  LONGVIEW_HD static float Sum(const Args& args, int64_t row, int i) {
    const int64_t at = row * args.width + i;
    const float bias = args.bias == nullptr ? 0.0f : args.bias[i];
    const float y = args.y == nullptr ? 0.0f : Widen(static_cast<const T*>(args.y)[at]);
    return (args.x[at] + bias) + y;
  }
};

template <typename T>
struct PlaceBiasElements : ElementsOf<PlaceBiases> {
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    T* const y = static_cast<T*>(args.y) + row * args.columns + column;
    const int64_t entry = args.entries[row];
    Narrow(entry < 0 ? 0.0f : Widen(*y) + args.bias[entry * args.columns + column], y);
  }
};

template <typename T>
struct AddedElements : WideRowsOf<AddedRows> {
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const int64_t at = row * args.width + column, from = args.index[row];
    const auto* added = static_cast<const T*>(args.added);
    Narrow(Widen(static_cast<const T*>(args.in)[at]) +
               (from < 0 ? 0.0f : Widen(added[from * args.width + column])),
           static_cast<T*>(args.out) + at);
  }
};

}  // namespace longview::kernels::cuda
