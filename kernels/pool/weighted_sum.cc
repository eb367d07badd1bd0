#include "kernels/pool/weighted_sum.h"

#include <algorithm>
#include <cstring>

namespace longview::kernels {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kSumChannels / kLanes;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Halves = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// A vector of a value row's channels from element `at` on, those behind the first `channels` zero.
[[gnu::always_inline]] inline void LoadValues(const void* values, int64_t at, int channels,
                                              DType dtype, Floats& loaded) {
  loaded = Floats{};
  if (dtype == DType::kFloat32) {
    std::memcpy(&loaded, static_cast<const float*>(values) + at, channels * sizeof(float));
    return;
  }
  Halves bits = {};
  std::memcpy(&bits, static_cast<const uint16_t*>(values) + at, channels * sizeof(uint16_t));
  loaded = reinterpret_cast<Floats>(__builtin_convertvector(bits, Words) << 16);
}

// kCount vectors of channels from vector `first` on. Called with constants, so that whole tiles
// copy without a length and the sums are registers.
template <int kCount>
[[gnu::always_inline]] inline void SumVectors(const WeightedSum& request, int first, int columns,
                                              int channels, DType dtype) {
  const WeightedSum r = request;
  Floats* const out = reinterpret_cast<Floats*>(r.sums) + first;
  Floats sums[kSumColumns][kCount];
#pragma GCC unroll 4
  for (int c = 0; c < kSumColumns; ++c) {
#pragma GCC unroll 2
    for (int i = 0; i < kCount; ++i) sums[c][i] = r.continues ? out[c * kVectors + i] : Floats{};
  }
  for (int64_t t = 0; t < r.tokens; ++t) {
    if (r.visible != nullptr && r.visible[t] == 0) continue;
    Floats values[kCount];
#pragma GCC unroll 2
    for (int i = 0; i < kCount; ++i) {
      const int channel = (first + i) * kLanes;
      LoadValues(r.values, t * r.value_stride + channel, std::clamp(channels - channel, 0, kLanes),
                 dtype, values[i]);
    }
    const float* weights = r.weights + t * r.weight_stride;
#pragma GCC unroll 4
    for (int c = 0; c < kSumColumns; ++c) {
      const float weight = c < columns ? weights[c] : 0.0f;
#pragma GCC unroll 2
      for (int i = 0; i < kCount; ++i) sums[c][i] += weight * values[i];
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kSumColumns; ++c) {
#pragma GCC unroll 2
    for (int i = 0; i < kCount; ++i) out[c * kVectors + i] = sums[c][i];
  }
}

// All vectors at once where registers hold their sums, else one after the other.
[[gnu::always_inline]] inline void Sum(const WeightedSum& request, int columns, int channels,
                                       DType dtype) {
  if (__builtin_cpu_supports("avx512f") != 0) {
    return SumVectors<kVectors>(request, 0, columns, channels, dtype);
  }
  for (int i = 0; i < kVectors; ++i) SumVectors<1>(request, i, columns, channels, dtype);
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
