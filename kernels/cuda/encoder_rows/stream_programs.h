// The residual stream of text encoders: how it begins, what a pre-norm layer adds to it, and rows
// that something is added to by their place.
#pragma once

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/column_programs.h"
#include "kernels/cuda/common_rows/norm_program.h"
#include "kernels/cuda/encoder_rows/encoder_api.h"

namespace longview::kernels::cuda {

// Base of elements whose arguments name their number of rows and their width themselves.
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

// Rows of NormProgram<PrenormRows, T>: the sum stays in x.
template <typename T>
LONGVIEW_HD inline void WriteColumn(const PrenormRows& args, int64_t row, int i, float value) {
  Narrow(value, static_cast<T*>(args.out) + row * args.width + i);
}

template <typename T>
struct GatedElements : ElementsOf<GatedRows> {
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const int64_t at = row * args.columns + column;
    T* const y = static_cast<T*>(args.y) + at;
    const float gate = Widen(static_cast<const T*>(args.gates)[at]) + args.gate_bias[column];
    Narrow(Activate(args.activation, Widen(*y) + args.bias[column]) * gate, y);
  }
};

// An element is a pair of a rotated vector, or one of the columns behind.
template <typename T>
struct RotatedElements : ElementsOf<RotatedRows> {
  LONGVIEW_HD static int Columns(const Args& args) { return args.columns - args.rotated / 2; }
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int element) {
    T* const y = static_cast<T*>(args.y) + row * args.columns;
    const int half = args.dim / 2, pairs = args.rotated / 2;
    if (element >= pairs) {
      const int column = element + pairs;
      return Narrow(Widen(y[column]) + args.bias[column], y + column);
    }
    const int j = element % half, first = element / half * args.dim + j;
    const float a = Widen(y[first]) + args.bias[first];
    const float b = Widen(y[first + half]) + args.bias[first + half];
    const float* angles = args.angles + int64_t{args.places[row]} * args.dim;
    Narrow(a * angles[j] - b * angles[half + j], y + first);
    Narrow(b * angles[j] + a * angles[half + j], y + first + half);
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
