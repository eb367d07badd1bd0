// What heads do with rows of an encoder's output, whatever the family.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "models/dense/layer.h"
#include "models/encoder/family.h"

namespace longview::models {

using HeadRows = std::vector<const float*>;

// The rows of a dense matrix [n, width].
HeadRows RowsOf(const std::vector<float>& values, int64_t width);

// act(layer(row)) of every row, [rows, out]. Throws what LibTorch throws.
std::vector<float> ApplyHead(const DenseLayer& layer, const HeadRows& rows, Activation activation,
                             const kernels::ParallelFor& pool);

// Rows at `positions` of the item's one sequence. REQUIRES: they are wanted.
HeadRows PickRows(const HeadInput& input, std::span<const int32_t> positions, int64_t width);

// The item's embedding by pooling cls or mean from its first sequence's wanted rows.
std::vector<float> PoolRows(const EncoderItem& item, const float* rows, int64_t width);

}  // namespace longview::models
