// A decoded picture, 8-bit RGB, rows without gaps, and its resizing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace longview::models {

// [height, width, 3], sides at least 1.
struct Raster {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;

  Raster() = default;
  Raster(int w, int h) : width(w), height(h), rgb(size_t{3} * w * h) {}

  const uint8_t* row(int y) const { return rgb.data() + size_t{3} * width * y; }
  uint8_t* row(int y) { return rgb.data() + size_t{3} * width * y; }
};

// Resizing with the results of Pillow 13, bit for bit: two passes over 8-bit data, each rounded to
// 8 bits, with filters that widen when a picture shrinks (anti-aliasing). LibTorch's anti-aliased
// resize differs by up to two levels, which is why this is here. Values are Pillow's resample
// codes.
enum class Resample {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5
};

// REQUIRES: sides at least 1. Thread-safe: a pure function.
Raster Resized(const Raster& picture, int width, int height, Resample resample);

}  // namespace longview::models
