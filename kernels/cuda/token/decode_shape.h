// A Transformer-LS as its decode step on a device knows it: numbers, and weights in the device's
// memory. Plain values.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cuda/rows/rows_api.h"
#include "kernels/cuda/token/cache_rows.h"
#include "kernels/span/kv_layout.h"
#include "kernels/span/schedule_planner.h"

namespace longview::kernels::cuda {

struct DecodeShape {
  int32_t width = 0;
  int32_t intermediate = 0;
  int32_t vocab = 0;
  SchedulePattern attention;
  bool pre_norm = false;
  RowActivation activation = RowActivation::kNone;
  DType dtype = DType::kFloat32;

  int32_t heads() const { return attention.heads; }
  int32_t dim() const { return width / heads(); }
  int32_t columns() const { return heads() * attention.rank; }
  int32_t projected() const { return 3 * width + columns(); }
  bool early() const { return !attention.paper(); }
  // Columns of a state of sums: those of hidden states come behind those of keys and values.
  int32_t state_columns() const { return early() ? 2 * columns() : columns(); }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(dim())); }
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
  const void* window_table;                  // T [heads, window, dim] by distance
  const void* segment_table;                 // T [heads, segment_ids, dim] by distance in pages
  ConstantBlock zero_segments, zero_window;  // With zero memory.
};

struct DecodeWeights {
  const float* words;  // [vocab, width], times sqrt(width)
  std::vector<DecodeLayer> layers;
  DecodeLinear logits;
  int64_t segment_ids;             // Entries of every segment_table: what the longest text reads.
  const int32_t* zeros = nullptr;  // With zero memory, for ConstantBlocks.
};

}  // namespace longview::kernels::cuda
