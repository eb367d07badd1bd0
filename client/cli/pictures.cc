#include "client/cli/pictures.h"

#include <fstream>

namespace longview::client {
namespace {

constexpr std::string_view kJpeg = "\xff\xd8\xff";
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
// A RIFF file: its size in bytes stands between the two.
constexpr std::string_view kRiff = "RIFF", kWebp = "WEBP";
constexpr size_t kWebpAt = 8;
constexpr size_t kMostNeeded = 12;

}  // namespace

std::string_view PictureFormat(std::string_view content) {
  if (content.starts_with(kJpeg)) return "JPEG";
  if (content.starts_with(kPng)) return "PNG";
  const bool webp = content.size() >= kMostNeeded && content.starts_with(kRiff) &&
                    content.substr(kWebpAt).starts_with(kWebp);
  return webp ? "WebP" : "";
}

std::string_view PictureFormatOfFile(const std::string& path) {
  char bytes[kMostNeeded];
  std::ifstream file(path, std::ios::binary);
  file.read(bytes, sizeof bytes);
  return PictureFormat({bytes, static_cast<size_t>(file.gcount())});
}

}  // namespace longview::client
