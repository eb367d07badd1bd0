#include "models/image/raster.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace longview::models {
namespace {

constexpr int kFractionBits = 32 - 8 - 2;  // 8 bits of value, 2 of headroom for negative lobes.

struct Filter {
  double support;  // In source pixels when not shrinking.
  double (*weight)(double x);
};

double Sinc(double x) {
  if (x == 0) return 1;
  return std::sin(x * std::numbers::pi) / (x * std::numbers::pi);
}

double Box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }
double Triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }
double Hamming(double x) {
  x = std::abs(x);
  return x >= 1 ? 0 : Sinc(x) * (0.54 + 0.46 * std::cos(x * std::numbers::pi));
}
double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}
double Lanczos(double x) { return x >= -3 && x < 3 ? Sinc(x) * Sinc(x / 3) : 0; }

Filter FilterOf(Resample resample) {
  switch (resample) {
    case Resample::kBox:
      return {0.5, Box};
    case Resample::kHamming:
      return {1, Hamming};
    case Resample::kBicubic:
      return {2, Cubic};
    case Resample::kLanczos:
      return {3, Lanczos};
    default:
      return {1, Triangle};
  }
}

// The taps of every output place along one axis: weights[i] over source places from first[i].
struct Taps {
  int width = 0;  // Weights reserved per place.
  std::vector<int> first, count;
  std::vector<int> weights;  // [places, width], fixed point.
};

Taps MakeTaps(int from, int to, const Filter& filter) {
  const double scale = static_cast<double>(from) / to;
  const double widen = std::max(scale, 1.0);
  const double support = filter.support * widen;
  Taps taps;
  taps.width = static_cast<int>(std::ceil(support)) * 2 + 1;
  taps.weights.resize(static_cast<size_t>(to) * taps.width);
  std::vector<double> exact(taps.width);
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int count = std::min(from, static_cast<int>(centre + support + 0.5)) - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      exact[k] = filter.weight((k + first - centre + 0.5) * (1.0 / widen));
      sum += exact[k];
    }
    for (int k = 0; k < count; ++k) {
      const double weight = (sum != 0 ? exact[k] / sum : exact[k]) * (1 << kFractionBits);
      taps.weights[static_cast<size_t>(i) * taps.width + k] =
          static_cast<int>(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    taps.first.push_back(first);
    taps.count.push_back(count);
  }
  return taps;
}

uint8_t Rounded(int sum) { return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255)); }

Raster ResizedAcross(const Raster& in, int width, const Filter& filter) {
  const Taps taps = MakeTaps(in.width, width, filter);
  Raster out(width, in.height);
  for (int y = 0; y < in.height; ++y) {
    const uint8_t* row = in.row(y);
    uint8_t* to = out.row(y);
    for (int x = 0; x < width; ++x, to += 3) {
      const int* weights = taps.weights.data() + static_cast<size_t>(x) * taps.width;
      const uint8_t* from = row + size_t{3} * taps.first[x];
      int sums[3] = {1 << (kFractionBits - 1), 1 << (kFractionBits - 1), 1 << (kFractionBits - 1)};
      for (int k = 0; k < taps.count[x]; ++k, from += 3) {
        for (int c = 0; c < 3; ++c) sums[c] += from[c] * weights[k];
      }
      for (int c = 0; c < 3; ++c) to[c] = Rounded(sums[c]);
    }
  }
  return out;
}

Raster ResizedDown(const Raster& in, int height, const Filter& filter) {
  const Taps taps = MakeTaps(in.height, height, filter);
  Raster out(in.width, height);
  std::vector<int> sums(size_t{3} * in.width);
  for (int y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), 1 << (kFractionBits - 1));
    for (int k = 0; k < taps.count[y]; ++k) {
      const int weight = taps.weights[static_cast<size_t>(y) * taps.width + k];
      const uint8_t* from = in.row(taps.first[y] + k);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += from[i] * weight;
    }
    std::transform(sums.begin(), sums.end(), out.row(y), Rounded);
  }
  return out;
}

Raster ResizedNearest(const Raster& in, int width, int height) {
  Raster out(width, height);
  const double across = static_cast<double>(in.width) / width;
  const double down = static_cast<double>(in.height) / height;
  for (int y = 0; y < height; ++y) {
    const uint8_t* row = in.row(std::min(in.height - 1, static_cast<int>((y + 0.5) * down)));
    for (int x = 0; x < width; ++x) {
      const int source = std::min(in.width - 1, static_cast<int>((x + 0.5) * across));
      std::copy_n(row + size_t{3} * source, 3, out.row(y) + 3 * x);
    }
  }
  return out;
}

}  // namespace

Raster Resized(const Raster& picture, int width, int height, Resample resample) {
  if (resample == Resample::kNearest) return ResizedNearest(picture, width, height);
  const Filter filter = FilterOf(resample);
  if (width == picture.width && height == picture.height) return picture;
  if (width == picture.width) return ResizedDown(picture, height, filter);
  if (height == picture.height) return ResizedAcross(picture, width, filter);
  // Pillow 13 starts with the height where it shrinks by much more than the width; the order
  // shows in the rounding between the passes.
  const int shorter = picture.height - height, narrower = picture.width - width;
  if (shorter > 0 && shorter > 2 * narrower) {
    return ResizedAcross(ResizedDown(picture, height, filter), width, filter);
  }
  return ResizedDown(ResizedAcross(picture, width, filter), height, filter);
}

}  // namespace longview::models
