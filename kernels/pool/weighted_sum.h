// The inner loop of SegmentPool and MixPlaces. Internal to kernels/pool.
#pragma once

#include <cstdint>

#include "kernels/span/kv_layout.h"

namespace longview::kernels {

inline constexpr int kSumColumns = 4;    // Columns of one call.
inline constexpr int kSumChannels = 32;  // Channels of one call.

// sums[c][d] = sum over t of weights[t * weight_stride + c] * values[t * value_stride + d],
// t ascending, one chain per element; tokens with visible[t] == 0 are left out. 1 <= columns <=
// kSumColumns, channels likewise. With `continues`, the sums go on from what stands in them.
struct WeightedSum {
  const float* weights = nullptr;
  int64_t weight_stride = 0;
  int columns = 0;
  const void* values = nullptr;
  DType dtype = DType::kFloat32;
  int64_t value_stride = 0;  // Elements.
  int channels = 0;
  const uint8_t* visible = nullptr;  // [tokens]; null: all.
  int64_t tokens = 0;
  bool continues = false;
  float* sums = nullptr;  // [kSumColumns][kSumChannels], dense, 64-byte aligned.
};

void SumWeighted(const WeightedSum& request);

}  // namespace longview::kernels
