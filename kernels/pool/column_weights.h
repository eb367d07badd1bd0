// Softmax over the tokens of neighbouring columns, side by side: what pooling multiplies values by.
// Thread-safe: a pure function. A column's bits depend on its own scores alone.
#pragma once

#include <cstdint>

namespace longview::kernels {

inline constexpr int kWeightColumns = 128;  // Most columns of one call.

struct ColumnWeights {
  const float* scores = nullptr;  // [T, columns], natural units.
  int64_t score_stride = 0;
  const uint8_t* visible = nullptr;  // [T], 0 = left out; null: all visible.
  int64_t tokens = 0;                // T
  int columns = 0;                   // In [1, kWeightColumns].
  float* weights = nullptr;          // [T, columns], written.
  int64_t weight_stride = 0;
};

// weights[t, c] = exp(scores[t, c]) / sum over t; zeros for what is left out, and for a column
// without anything to see.
void WeighColumns(const ColumnWeights& request);

}  // namespace longview::kernels
