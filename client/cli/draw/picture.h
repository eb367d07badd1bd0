// Pictures for drawing on: reading what the server reads, writing PNG.
// Thread-safe: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::client {

using Rgb = std::array<uint8_t, 3>;  // Red, green, blue.

// [height, width, 3]
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;

  Picture() = default;
  Picture(int w, int h) : width(w), height(h), rgb(size_t{3} * w * h) {}
  uint8_t* at(int x, int y) { return rgb.data() + (size_t{1} * y * width + x) * 3; }
};

// JPEG (turned by its EXIF orientation), PNG or WebP. INVALID_ARGUMENT for anything else.
absl::StatusOr<Picture> ReadPicture(std::string_view bytes);

// The picture as a PNG file's bytes.
std::string WritePng(const Picture& picture);

}  // namespace longview::client
