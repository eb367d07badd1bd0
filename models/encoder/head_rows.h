// The work of heads on rows of an encoder's output, whatever the family.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "models/dense/layer.h"
#include "models/dense/rowwise.h"
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

// LayerNorm of every row of `rows`, [n, width], in place.
void NormRows(const NormWeights& norm, int64_t width, std::vector<float>& rows);

// [first, second, first * second, first - second], the published features of a pair.
std::vector<float> ComparePair(const std::vector<float>& first, const std::vector<float>& second);

// The sum of the rows [tokens, width] that are not masked, divided by `divisor`: the mean of
// published code in which padding counts. REQUIRES: divisor > 0.
std::vector<float> MeanOver(const EncoderSequence& sequence, const float* rows, int64_t width,
                            double divisor);

// The item's embedding by pooling cls or mean from its first sequence's wanted rows.
std::vector<float> PoolRows(const EncoderItem& item, const float* rows, int64_t width);

}  // namespace longview::models
