// A Transformer-LS as its decode step on a device knows it: numbers, and weights in the device's
// memory. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/rows/rows_api.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

struct DecodeShape {
  int32_t width = 0;
  int32_t heads = 0;
  int32_t intermediate = 0;
  int32_t vocab = 0;
  int32_t window = 0;   // Keys of a token, itself included.
  int32_t segment = 0;  // l
  int32_t rank = 0;     // r
  bool pre_norm = false;
  RowActivation activation = RowActivation::kNone;
  DType dtype = DType::kFloat32;

  int32_t dim() const { return width / heads; }
  int32_t columns() const { return heads * rank; }
  int32_t projected() const { return 3 * width + columns(); }
  // Projected keys that a token at `position` sees.
  int32_t Pages(int32_t position) const { return position / segment * rank; }
};

// y = x W^T + b.
struct DecodeLinear {
  const void* weight;  // T [out, in]
  const float* bias;   // [out]
};

struct DecodeLayer {
  DecodeLinear project;  // Query, key, value and scores of segments: [3 * width + columns, width].
  DecodeLinear out;
  DecodeLinear expand;
  DecodeLinear contract;
  RowNorm norm1, norm2;
  RowNorm window_norm, segment_norm;
  // r_w_bias and r_r_bias [width], times sqrt(dim).
  const float* window_add;
  const float* distance_add;
  const void* window_table;   // T [heads, window, dim] by distance
  const void* segment_table;  // T [heads, segment_ids, dim] by distance in pages
};

struct DecodeWeights {
  const float* words;  // [vocab, width], times sqrt(width)
  std::vector<DecodeLayer> layers;
  DecodeLinear logits;
  int64_t segment_ids;  // Entries of every segment_table: pages that the longest text has.
};

}  // namespace longview::kernels::cuda
