// Small fp32 matrix products of one item's own data, outside the packed linears. Their shapes
// belong to the item alone, so the result's bits do not depend on who shares the batch.
#pragma once

#include <cstdint>

namespace longview::models {

// out [f, d] (rows `stride` floats apart) = a^T b for a [n, f], b [n, d]. Throws what LibTorch
// throws.
void TransposedProduct(const float* a, const float* b, int64_t n, int64_t f, int64_t d, float* out,
                       int64_t stride);

}  // namespace longview::models
