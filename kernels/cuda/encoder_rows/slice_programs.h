// The Composite Slice Transformer's work on slices of tokens beside attention: pooling, and
// linears over places. Channels do not look at each other.
#pragma once

#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/common_rows/column_programs.h"
#include "kernels/cuda/encoder_rows/encoder_api.h"

namespace longview::kernels::cuda {

// ElementProgram: a slice per row.
template <typename T>
struct PoolSliceElements {
  using Args = PoolSlices;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.count; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.width; }
  LONGVIEW_HD static void Element(const Args& args, int64_t s, int column) {
    const SliceRows slice = args.slices[s];
    float result = 0;
    bool empty = true;
    for (int64_t row = slice.row0; row < slice.row0 + slice.rows; ++row) {
      if (args.visible[row] == 0) continue;
      const float value = Widen(static_cast<const T*>(args.rows)[row * args.width + column]);
      if (args.largest == 0) {
        result += value;
      } else if (empty || value > result) {
        result = value;
      }
      empty = false;
    }
    if (args.largest == 0 && slice.visible > 0) result /= static_cast<float>(slice.visible);
    Narrow(result, static_cast<T*>(args.out) + s * args.width + column);
  }
};

// ElementProgram: a part of a slice per row.
template <typename T>
struct PoolPartElements {
  using Args = PoolParts;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.count; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.width; }
  LONGVIEW_HD static void Element(const Args& args, int64_t i, int column) {
    const SlicePart part = args.parts[i];
    float* const sum = args.sums + i * args.width + column;
    bool empty = part.begins != 0;
    float result = empty ? 0.0f : *sum;
    for (int64_t row = part.row0; row < part.row0 + part.rows; ++row) {
      const float value = Widen(static_cast<const T*>(args.rows)[row * args.width + column]);
      if (args.largest == 0) {
        result += value;
      } else if (empty || value > result) {
        result = value;
      }
      empty = false;
    }
    if (args.largest == 0 && part.divisor > 0) result /= static_cast<float>(part.divisor);
    *sum = result;
  }
};

// ElementProgram: a place between the linears per row.
template <typename T>
struct MixInElements {
  using Args = MixSlices;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return int64_t{args.count} * args.mixed; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.width; }
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const SliceRows slice = args.slices[row / args.mixed];
    const int64_t k = row % args.mixed;
    float sum = 0;
    for (int64_t j = 0; j < slice.rows; ++j) {
      if (args.visible[slice.row0 + j] == 0) continue;
      const auto* from = static_cast<const T*>(args.rows) + (slice.row0 + j) * args.width;
      sum += args.first.weights[j * args.mixed + k] * Widen(from[column]);
    }
    args.between[row * args.width + column] =
        Activate(RowActivation::kGelu, args.first.bias[k] + sum);
  }
};

// ElementProgram: a place of a slice per row.
template <typename T>
struct MixOutElements {
  using Args = MixSlices;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return int64_t{args.count} * args.places; }
  LONGVIEW_HD static int Columns(const Args& args) { return args.width; }
  LONGVIEW_HD static void Element(const Args& args, int64_t row, int column) {
    const int64_t s = row / args.places, k = row % args.places;
    const SliceRows slice = args.slices[s];
    if (k >= slice.rows) return;
    float sum = 0;
    for (int64_t j = 0; j < args.mixed; ++j) {
      const float value = args.between[(s * args.mixed + j) * args.width + column];
      sum += args.second.weights[j * args.places + k] * value;
    }
    Narrow(args.second.bias[k] + sum,
           static_cast<T*>(args.out) + (slice.row0 + k) * args.width + column);
  }
};

}  // namespace longview::kernels::cuda
