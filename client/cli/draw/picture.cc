#include "client/cli/draw/picture.h"

#include <libexif/exif-data.h>
#include <png.h>
#include <turbojpeg.h>
#include <webp/decode.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace longview::client {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

absl::StatusOr<Picture> ReadPng(std::string_view bytes) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  Picture picture;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) != 0) {
    image.format = PNG_FORMAT_RGB;
    picture = Picture(static_cast<int>(image.width), static_cast<int>(image.height));
    const png_color black = {};
    if (png_image_finish_read(&image, &black, picture.rgb.data(), 0, nullptr) != 0) return picture;
  }
  return absl::InvalidArgumentError(std::string("PNG: ") + image.message);
}

int OrientationOf(std::string_view bytes) {
  const std::unique_ptr<ExifData, decltype(&exif_data_unref)> exif(
      exif_data_new_from_data(Bytes(bytes), static_cast<unsigned>(bytes.size())), exif_data_unref);
  if (exif == nullptr) return 1;
  const ExifEntry* entry = exif_content_get_entry(exif->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->size < 2) return 1;
  return exif_get_short(entry->data, exif_data_get_byte_order(exif.get()));
}

// Orientations 5 to 8 exchange the sides; then the flips.
Picture Turned(Picture picture, int orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  const bool swaps = orientation >= 5;
  const bool mirrored =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool flipped = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Picture out(swaps ? picture.height : picture.width, swaps ? picture.width : picture.height);
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const int across = mirrored ? out.width - 1 - x : x, down = flipped ? out.height - 1 - y : y;
      const uint8_t* from = swaps ? picture.at(down, across) : picture.at(across, down);
      std::copy_n(from, 3, out.at(x, y));
    }
  }
  return out;
}

absl::StatusOr<Picture> ReadJpeg(std::string_view bytes) {
  const std::unique_ptr<void, decltype(&tjDestroy)> reader(tjInitDecompress(), tjDestroy);
  int width = 0, height = 0, sampling = 0, space = 0;
  const auto size = static_cast<unsigned long>(bytes.size());
  if (tjDecompressHeader3(reader.get(), Bytes(bytes), size, &width, &height, &sampling, &space) ==
      0) {
    Picture picture(width, height);
    if (tjDecompress2(reader.get(), Bytes(bytes), size, picture.rgb.data(), width, 0, height,
                      TJPF_RGB, TJFLAG_ACCURATEDCT) == 0) {
      return Turned(std::move(picture), OrientationOf(bytes));
    }
  }
  return absl::InvalidArgumentError(std::string("JPEG: ") + tjGetErrorStr2(reader.get()));
}

absl::StatusOr<Picture> ReadWebp(std::string_view bytes) {
  int width = 0, height = 0;
  const std::unique_ptr<uint8_t, decltype(&WebPFree)> rgb(
      WebPDecodeRGB(Bytes(bytes), bytes.size(), &width, &height), WebPFree);
  if (rgb == nullptr) return absl::InvalidArgumentError("WebP: not readable");
  Picture picture(width, height);
  std::copy_n(rgb.get(), picture.rgb.size(), picture.rgb.data());
  return picture;
}

}  // namespace

absl::StatusOr<Picture> ReadPicture(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG")) return ReadPng(bytes);
  if (bytes.starts_with("\xff\xd8")) return ReadJpeg(bytes);
  if (bytes.starts_with("RIFF")) return ReadWebp(bytes);
  return absl::InvalidArgumentError("not a JPEG, PNG or WebP picture");
}

std::string WritePng(const Picture& picture) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(size, '\0');
  png_image_write_to_memory(&image, out.data(), &size, 0, picture.rgb.data(), 0, nullptr);
  out.resize(size);
  return out;
}

}  // namespace longview::client
