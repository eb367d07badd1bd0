// A linear with its bias, and the head-sized way to use it: few rows from anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "models/dense/linear.h"
#include "models/dense/row_linear.h"
#include "models/dense/rowwise.h"
#include "models/dense/scratch.h"

namespace longview::models {

// A second pack of a layer's weight, for the few rows of a decode step.
struct RowPack {
  Scratch memory;
  RowLinear linear;
};

// Immutable after load. Thread-safe as Linear is.
struct DenseLayer {
  Linear linear;
  std::vector<float> bias;             // [out]; zeros where the layer has none.
  std::unique_ptr<RowPack> rows = {};  // Second pack, if asked for and faster.

  int64_t in() const { return linear.in(); }
  int64_t out() const { return linear.out(); }
};

// out[i, :] = act(layer(rows[i])), fp32 in and out, computed in the layer's type.
// A row's bits depend on that row alone. Allocates scratch for one panel: for heads, not for the
// layers of an encoder. Throws what LibTorch throws.
void ApplyToRows(const DenseLayer& layer, std::span<const float* const> rows, Activation act,
                 const kernels::ParallelFor& pool, float* out);

}  // namespace longview::models
