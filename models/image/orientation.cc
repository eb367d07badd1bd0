#include "models/image/orientation.h"

#include <libexif/exif-data.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace longview::models {
namespace {

constexpr std::string_view kExifHeader("Exif\0\0", 6);

struct Unref {
  void operator()(ExifData* data) const { exif_data_unref(data); }
};

// The entry's first number; 0 of a type that holds none.
int64_t FirstNumber(const ExifEntry& entry, ExifByteOrder order) {
  if (entry.components < 1 || entry.size < exif_format_get_size(entry.format)) return 0;
  switch (entry.format) {
    case EXIF_FORMAT_SHORT:
      return exif_get_short(entry.data, order);
    case EXIF_FORMAT_SSHORT:
      return exif_get_sshort(entry.data, order);
    case EXIF_FORMAT_LONG:
      return exif_get_long(entry.data, order);
    case EXIF_FORMAT_SLONG:
      return exif_get_slong(entry.data, order);
    default:
      return 0;
  }
}

// The number in the orientation tag of the first directory; none if there is no tag.
std::optional<int64_t> OrientationTag(std::string_view tiff) {
  for (int i = 0; i < 2 && tiff.starts_with(kExifHeader); ++i) tiff.remove_prefix(6);
  std::string block = std::string(kExifHeader) + std::string(tiff);
  // Some writers put the magic number 42 of big-endian files the wrong way round.
  if (tiff.starts_with(std::string_view("MM*\0", 4))) std::swap(block[8], block[9]);
  const std::unique_ptr<ExifData, Unref> data(exif_data_new());
  if (data == nullptr) return std::nullopt;
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), reinterpret_cast<const unsigned char*>(block.data()),
                      static_cast<unsigned>(block.size()));
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->data == nullptr) return std::nullopt;
  return FirstNumber(*entry, exif_data_get_byte_order(data.get()));
}

// The digit behind the first `tiff:Orientation="` or `tiff:Orientation>`.
int64_t OrientationOfXmp(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = xmp.find(kName); at != xmp.npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    const size_t sign = rest.starts_with("=\"") ? 2 : rest.starts_with(">") ? 1 : rest.size();
    rest.remove_prefix(sign);
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] - '0';
  }
  return 1;
}

}  // namespace

int StatedOrientation(const OrientationNotes& notes) {
  std::optional<int64_t> stated;
  if (notes.exif) stated = OrientationTag(*notes.exif);
  if (!stated) stated = OrientationOfXmp(notes.xmp);
  return *stated >= 1 && *stated <= 8 ? static_cast<int>(*stated) : 1;
}

Raster Oriented(Raster picture, int orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  const bool transposed = orientation >= 5;
  // Whether the source is read from its right, from its bottom.
  const bool right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Raster out(transposed ? picture.height : picture.width,
             transposed ? picture.width : picture.height);
  for (int y = 0; y < out.height; ++y) {
    uint8_t* to = out.row(y);
    for (int x = 0; x < out.width; ++x) {
      const int u = transposed ? y : x, v = transposed ? x : y;
      const uint8_t* from = picture.row(bottom ? picture.height - 1 - v : v) +
                            size_t{3} * (right ? picture.width - 1 - u : u);
      std::copy_n(from, 3, to + 3 * x);
    }
  }
  return out;
}

}  // namespace longview::models
