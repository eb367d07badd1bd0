// Encoded pictures to 8-bit RGB, with the results of Pillow's convert("RGB"): gray replicated,
// palettes looked up, alpha dropped and not blended, 16-bit colour cut to its high byte, 16-bit
// gray clipped at 255, CMYK of JPEG files taken as inverted (Adobe). Gamma and colour profiles are
// ignored.
//
// Formats: JPEG, PNG, WebP; of an animation, the first picture. A file opens where Pillow opens it:
// what follows the last pixel may be missing, a pixel may not. What a file claims is checked on its
// header before anything of its size is allocated.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/image/raster.h"

namespace longview::models {

// Encoded bytes, borrowed.
using ImageBytes = std::span<const uint8_t>;

enum class ImageFormat { kJpeg, kPng, kWebp };

std::string_view FormatName(ImageFormat format);  // "JPEG", ...

// Facts of the header, without decoding.
struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  int width = 0;  // Stored width, before any rotation.
  int height = 0;
  int orientation = 1;  // By Exif or XMP, 1 to 8; 1 where there is none.
};

struct DecodeLimits {
  int64_t max_pixels = int64_t{1} << 26;
};

// INVALID_ARGUMENT, marked as undecodable (codec.h) unless it is a limit: no known format,
// broken header, more pixels than the limit.
absl::StatusOr<ImageHeader> ReadImageHeader(ImageBytes bytes, const DecodeLimits& limits);

// The picture; with `rotate`, turned as its orientation says. INVALID_ARGUMENT as above, or
// when the data are truncated or damaged.
absl::StatusOr<Raster> DecodeImage(ImageBytes bytes, const DecodeLimits& limits, bool rotate);

}  // namespace longview::models
