// Resizing with the results of Pillow 13, bit for bit: two passes over 8-bit data, each rounded to
// 8 bits, with filters that widen when a picture shrinks (anti-aliasing). LibTorch's anti-aliased
// resize differs by up to two levels, which is why this is here. Thread-safe: pure functions.
#pragma once

#include "models/image/raster.h"

namespace longview::models {

// Values are Pillow's resample codes.
enum class Resample {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5
};

// REQUIRES: sides at least 1.
Raster Resized(const Raster& picture, int width, int height, Resample resample);

}  // namespace longview::models
