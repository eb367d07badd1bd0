#include "kernels/pool/weighted_sum.h"

#include <cstring>

namespace longview::kernels {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kSumChannels / kLanes;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Halves = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// Called with constants, so that whole tiles copy without a length.
[[gnu::always_inline]] inline void Sum(const WeightedSum& request, int columns, int channels,
                                       DType dtype) {
  Floats sums[kSumColumns][kVectors] = {};
  if (request.continues) std::memcpy(sums, request.sums, sizeof sums);
  for (int64_t t = 0; t < request.tokens; ++t) {
    if (request.visible != nullptr && request.visible[t] == 0) continue;
    float weights[kSumColumns] = {};
    Floats values[kVectors] = {};
    std::memcpy(weights, request.weights + t * request.weight_stride, columns * sizeof(float));
    const int64_t at = t * request.value_stride;
    if (dtype == DType::kFloat32) {
      std::memcpy(values, static_cast<const float*>(request.values) + at, channels * sizeof(float));
    } else {
      Halves bits[kVectors] = {};
      std::memcpy(bits, static_cast<const uint16_t*>(request.values) + at,
                  channels * sizeof(uint16_t));
      for (int i = 0; i < kVectors; ++i) {
        values[i] = reinterpret_cast<Floats>(__builtin_convertvector(bits[i], Words) << 16);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < kSumColumns; ++c) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) sums[c][i] += weights[c] * values[i];
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kSumColumns; ++c) {
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) {
      reinterpret_cast<Floats*>(request.sums)[c * kVectors + i] = sums[c][i];
    }
  }
}

}  // namespace

// One body, compiled for the widths a server meets; the loader picks one per process, so
// bits never depend on the call.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void SumWeighted(
    const WeightedSum& request) {
  const bool whole = request.columns == kSumColumns && request.channels == kSumChannels;
  if (!whole) {
    Sum(request, request.columns, request.channels, request.dtype);
  } else if (request.dtype == DType::kFloat32) {
    Sum(request, kSumColumns, kSumChannels, DType::kFloat32);
  } else {
    Sum(request, kSumColumns, kSumChannels, DType::kBFloat16);
  }
}

}  // namespace longview::kernels
