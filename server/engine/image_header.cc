#include "server/engine/image_header.h"

#include <cstdint>

namespace longview::server {
namespace {

uint32_t Byte(std::string_view bytes, size_t at) { return static_cast<unsigned char>(bytes[at]); }

uint32_t BigEndian(std::string_view bytes, size_t at, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | Byte(bytes, at + static_cast<size_t>(i));
  return value;
}

uint32_t LittleEndian(std::string_view bytes, size_t at, int count) {
  uint32_t value = 0;
  for (size_t i = at + static_cast<size_t>(count); i > at; --i) {
    value = value << 8 | Byte(bytes, i - 1);
  }
  return value;
}

// The first frame header (SOF0 .. SOF15, without the tables among these).
size_t JpegPixels(std::string_view bytes) {
  size_t at = 2;
  while (at + 9 <= bytes.size()) {
    const uint32_t marker = Byte(bytes, at + 1);
    if (Byte(bytes, at) != 0xFF) return 0;
    if (marker == 0xFF) {  // A filling byte.
      ++at;
      continue;
    }
    const bool frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame) return size_t{BigEndian(bytes, at + 5, 2)} * BigEndian(bytes, at + 7, 2);
    const bool alone = marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
    at += 2 + (alone ? 0 : BigEndian(bytes, at + 2, 2));
  }
  return 0;
}

size_t WebpPixels(std::string_view bytes) {
  const std::string_view chunk = bytes.substr(12, 4);
  if (chunk == "VP8X") {
    return (size_t{LittleEndian(bytes, 24, 3)} + 1) * (LittleEndian(bytes, 27, 3) + 1);
  }
  if (chunk == "VP8L") {
    const uint32_t sides = LittleEndian(bytes, 21, 4);
    return (size_t{sides & 0x3FFF} + 1) * ((sides >> 14 & 0x3FFF) + 1);
  }
  if (chunk == "VP8 ") {
    return size_t{LittleEndian(bytes, 26, 2) & 0x3FFF} * (LittleEndian(bytes, 28, 2) & 0x3FFF);
  }
  return 0;
}

}  // namespace

size_t HeaderPixels(std::string_view image) {
  constexpr size_t kSmallest = 30;  // No picture is smaller.
  if (image.size() < kSmallest) return 0;
  if (image.starts_with("\x89PNG")) {
    return size_t{BigEndian(image, 16, 4)} * BigEndian(image, 20, 4);
  }
  if (image.starts_with("\xFF\xD8")) return JpegPixels(image);
  if (image.starts_with("RIFF") && image.substr(8, 4) == "WEBP") return WebpPixels(image);
  return 0;
}

}  // namespace longview::server
