#include "models/image/decode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/image/codec.h"
#include "models/image/orientation.h"
#include "models/status_macros.h"
#include "models/stop_scope.h"

namespace longview::models {
namespace {

struct Codec {
  ImageFormat format;
  std::string_view name;
  bool (*matches)(ImageBytes bytes);
  absl::StatusOr<ImageHeader> (*read_header)(ImageBytes bytes);
  absl::Status (*decode)(ImageBytes bytes, Raster& out);
};

bool StartsWith(ImageBytes bytes, size_t offset, std::string_view magic) {
  return bytes.size() >= offset + magic.size() &&
         std::memcmp(bytes.data() + offset, magic.data(), magic.size()) == 0;
}

bool IsJpeg(ImageBytes bytes) { return StartsWith(bytes, 0, "\xFF\xD8\xFF"); }
bool IsPng(ImageBytes bytes) { return StartsWith(bytes, 0, "\x89PNG\r\n\x1A\n"); }
bool IsWebp(ImageBytes bytes) {
  return StartsWith(bytes, 0, "RIFF") && StartsWith(bytes, 8, "WEBP");
}

constexpr std::array<Codec, 3> kCodecs = {{
    {ImageFormat::kJpeg, "JPEG", IsJpeg, ReadJpegHeader, DecodeJpeg},
    {ImageFormat::kPng, "PNG", IsPng, ReadPngHeader, DecodePng},
    {ImageFormat::kWebp, "WebP", IsWebp, ReadWebpHeader, DecodeWebp},
}};

const Codec* FindCodec(ImageBytes bytes) {
  const auto codec = std::find_if(kCodecs.begin(), kCodecs.end(),
                                  [&](const Codec& each) { return each.matches(bytes); });
  return codec == kCodecs.end() ? nullptr : &*codec;
}

absl::StatusOr<ImageHeader> ReadHeader(const Codec& codec, ImageBytes bytes,
                                       const DecodeLimits& limits) {
  ASSIGN_OR_RETURN(ImageHeader header, codec.read_header(bytes));
  header.format = codec.format;
  const int64_t pixels = int64_t{header.width} * header.height;
  if (header.width < 1 || header.height < 1) {
    return Undecodable(
        absl::StrCat("image: a side of ", header.width, " x ", header.height, " pixels is empty"));
  }
  if (pixels > limits.max_pixels) {
    return absl::InvalidArgumentError(absl::StrCat("image: ", header.width, " x ", header.height,
                                                   " is ", pixels, " pixels, the limit is ",
                                                   limits.max_pixels));
  }
  return header;
}

absl::Status UnknownFormat(ImageBytes bytes) {
  return Undecodable(bytes.empty() ? "image: no bytes"
                                   : absl::StrCat("image: ", bytes.size(),
                                                  " bytes that are neither JPEG, PNG nor WebP"));
}

}  // namespace

std::string_view FormatName(ImageFormat format) {
  return kCodecs[static_cast<size_t>(format)].name;
}

absl::StatusOr<ImageHeader> ReadImageHeader(ImageBytes bytes, const DecodeLimits& limits) {
  const Codec* codec = FindCodec(bytes);
  if (codec == nullptr) return UnknownFormat(bytes);
  return ReadHeader(*codec, bytes, limits);
}

absl::StatusOr<Raster> DecodeImage(ImageBytes bytes, const DecodeLimits& limits, bool rotate) {
  RETURN_IF_ERROR(CheckStop());
  const Codec* codec = FindCodec(bytes);
  if (codec == nullptr) return UnknownFormat(bytes);
  ASSIGN_OR_RETURN(const ImageHeader header, ReadHeader(*codec, bytes, limits));
  Raster picture(header.width, header.height);
  const absl::Status decoded = codec->decode(bytes, picture);
  RETURN_IF_ERROR(CheckStop());
  if (!decoded.ok()) return decoded;
  if (!rotate) return picture;
  return Oriented(std::move(picture), header.orientation);
}

}  // namespace longview::models
