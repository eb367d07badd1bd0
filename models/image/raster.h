// A decoded picture: 8-bit RGB, rows without gaps.
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

}  // namespace longview::models
