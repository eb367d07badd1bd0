#include "kernels/pool/weighted_sum.h"

#include <cstring>

namespace longview::kernels {
namespace {

constexpr int kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Halves = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

}  // namespace

// One body, compiled for the widths a server meets; the loader picks one per process, so
// bits never depend on the call.
#define LONGVIEW_WIDTHS \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

LONGVIEW_WIDTHS
void SumWeighted(const WeightedSum& request) {
  Floats sums[kSumColumns][kSumChannels / kLanes] = {};
  const bool wide = request.channels == kSumChannels && request.columns == kSumColumns;
  for (int64_t t = 0; t < request.tokens; ++t) {
    float weights[kSumColumns] = {};
    Floats values[kSumChannels / kLanes] = {};
    const float* w = request.weights + t * request.weight_stride;
    const int64_t at = t * request.value_stride;
    if (request.dtype == DType::kFloat32) {
      const float* row = static_cast<const float*>(request.values) + at;
      std::memcpy(values, row, wide ? sizeof(values) : request.channels * sizeof(float));
    } else {
      Halves bits[kSumChannels / kLanes] = {};
      const uint16_t* row = static_cast<const uint16_t*>(request.values) + at;
      std::memcpy(bits, row, wide ? sizeof(bits) : request.channels * sizeof(uint16_t));
      for (int i = 0; i < kSumChannels / kLanes; ++i) {
        values[i] = reinterpret_cast<Floats>(__builtin_convertvector(bits[i], Words) << 16);
      }
    }
    std::memcpy(weights, w, wide ? sizeof(weights) : request.columns * sizeof(float));
    for (int c = 0; c < kSumColumns; ++c) {
      for (int i = 0; i < kSumChannels / kLanes; ++i) sums[c][i] += weights[c] * values[i];
    }
  }
  std::memcpy(request.sums, sums, sizeof(sums));
}

}  // namespace longview::kernels
