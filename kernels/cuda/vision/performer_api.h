// Performer's attention on the device: kernels/pool/performer.h in three kernels. The largest
// projection of keys per head; the sums over the keys of a head; the queries.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

inline constexpr int kMostPerformerFeatures = 256;

// kernels::PerformerCall with pointers into device memory.
// REQUIRES: features and width up to kMostPerformerFeatures.
struct PerformerRows {
  const void* q;  // T [rows, heads, width]
  const void* k;
  const void* v;
  void* out;
  DType dtype;
  int64_t row_stride;  // Stride of q, k and v, in elements.
  int64_t out_row_stride;
  int32_t heads;
  int32_t width;
  int32_t features;
  const float* projection;  // [features, width]
  const int32_t* offsets;   // [images + 1]
  int32_t images;
  int32_t longest;  // Rows of the largest image.
  // Scratch.
  float* tops;  // [images, heads]
  float* sums;  // [images, heads, features, width + 1]: phi(k)^T v and, last, the sum of phi(k)
};

struct PerformerApi {
  Status (*run)(Stream* stream, const PerformerRows& args);
};

}  // namespace longview::kernels::cuda
