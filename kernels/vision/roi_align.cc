#include "kernels/vision/roi_align.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = 4;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Halves = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// The pixels of one axis that a bin reads, and what each weighs.
struct Window {
  int first = 0;
  int count = 0;
};

// A region along one axis, in map pixels.
struct Axis {
  float start, bin;
  int samples;
  int size;
};

Axis MakeAxis(float begin, float end, float scale, int bins, int size) {
  const float start = begin * scale - 0.5f, stop = end * scale - 0.5f;
  const float bin = (stop - start) / static_cast<float>(bins);
  return {start, bin, static_cast<int>(std::ceil(bin)), size};
}

// Weights of bin `index`, from weights[0] on for pixel `first`; they sum to 1 inside the map.
Window WeighPixels(const Axis& axis, int index, float* weights) {
  Window window;
  const float each = 1.0f / static_cast<float>(axis.samples);
  const auto add = [&](int pixel, float weight) {
    if (window.count == 0) window.first = pixel;
    for (; window.first + window.count <= pixel; ++window.count) weights[window.count] = 0;
    weights[pixel - window.first] += weight * each;
  };
  for (int t = 0; t < axis.samples; ++t) {
    float at = axis.start + static_cast<float>(index) * axis.bin +
               (static_cast<float>(t) + 0.5f) * axis.bin / static_cast<float>(axis.samples);
    if (at < -1.0f || at > static_cast<float>(axis.size)) continue;
    at = std::max(at, 0.0f);
    const int low = static_cast<int>(at);
    if (low >= axis.size - 1) {
      add(axis.size - 1, 1.0f);
      continue;
    }
    const float high_part = at - static_cast<float>(low);
    add(low, 1.0f - high_part);
    add(low + 1, high_part);
  }
  return window;
}

struct Bin {
  Window rows, columns;
  const float* row_weights;
  const float* column_weights;
};

// `count` channels from `channel` on, at most kVectors * kLanes; called with constants, so that
// whole tiles load without a length.
template <DType kType>
[[gnu::always_inline]] inline void SumChannels(const PyramidMap& map, const Bin& bin, int channel,
                                               int count, float* out) {
  Floats sums[kVectors] = {};
  for (int y = 0; y < bin.rows.count; ++y) {
    const int64_t row = int64_t{bin.rows.first + y} * map.width + bin.columns.first;
    for (int x = 0; x < bin.columns.count; ++x) {
      const int64_t at = (row + x) * map.channels + channel;
      const float weight = bin.row_weights[y] * bin.column_weights[x];
      Floats values[kVectors] = {};
      if constexpr (kType == DType::kFloat32) {
        std::memcpy(values, static_cast<const float*>(map.data) + at, count * sizeof(float));
      } else {
        Halves bits[kVectors] = {};
        std::memcpy(bits, static_cast<const uint16_t*>(map.data) + at, count * sizeof(uint16_t));
        for (int i = 0; i < kVectors; ++i) {
          values[i] = reinterpret_cast<Floats>(__builtin_convertvector(bits[i], Words) << 16);
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) sums[i] += weight * values[i];
    }
  }
  std::memcpy(out + channel, sums, count * sizeof(float));
}

template <DType kType>
[[gnu::always_inline]] inline void SumBin(const PyramidMap& map, const Bin& bin, float* out) {
  constexpr int kTile = kVectors * kLanes;
  int channel = 0;
  for (; channel + kTile <= map.channels; channel += kTile) {
    SumChannels<kType>(map, bin, channel, kTile, out);
  }
  if (channel < map.channels) SumChannels<kType>(map, bin, channel, map.channels - channel, out);
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void SumFloats(
    const PyramidMap& map, const Bin& bin, float* out) {
  SumBin<DType::kFloat32>(map, bin, out);
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void SumHalves(
    const PyramidMap& map, const Bin& bin, float* out) {
  SumBin<DType::kBFloat16>(map, bin, out);
}

}  // namespace

void AlignRegion(const PyramidMap& map, const Box& region, int bins, std::span<float> workspace,
                 float* out) {
  KERNEL_CHECK(workspace.size() >= AlignFloats(map.height, map.width));
  const Axis rows = MakeAxis(region.y0, region.y1, map.scale, bins, map.height);
  const Axis columns = MakeAxis(region.x0, region.x1, map.scale, bins, map.width);
  float* const row_weights = workspace.data();
  float* const column_weights = row_weights + map.height;
  for (int by = 0; by < bins; ++by) {
    Bin bin;
    bin.rows = WeighPixels(rows, by, row_weights);
    bin.row_weights = row_weights;
    for (int bx = 0; bx < bins; ++bx) {
      // A bin's weights are few; they are made again for every row of bins.
      bin.columns = WeighPixels(columns, bx, column_weights);
      bin.column_weights = column_weights;
      float* to = out + (int64_t{by} * bins + bx) * map.channels;
      (map.dtype == DType::kFloat32 ? SumFloats : SumHalves)(map, bin, to);
    }
  }
}

}  // namespace longview::kernels
