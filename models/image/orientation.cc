#include "models/image/orientation.h"

#include <libexif/exif-data.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace longview::models {
namespace {

constexpr std::string_view kExifHeader("Exif\0\0", 6);

struct Unref {
  void operator()(ExifData* data) const { exif_data_unref(data); }
};

// `block` is a JPEG file, or a TIFF structure behind "Exif\0\0".
int OrientationOf(ImageBytes block) {
  const std::unique_ptr<ExifData, Unref> data(exif_data_new());
  if (data == nullptr) return 1;
  exif_data_load_data(data.get(), block.data(), static_cast<unsigned>(block.size()));
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->size < 2) return 1;
  const int value = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return value >= 1 && value <= 8 ? value : 1;
}

int OrientationOfTiff(ImageBytes tiff) {
  std::vector<uint8_t> block(kExifHeader.begin(), kExifHeader.end());
  block.insert(block.end(), tiff.begin(), tiff.end());
  return OrientationOf(block);
}

uint32_t BigEndian(ImageBytes bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// The content of the eXIf chunk; empty if there is none.
ImageBytes PngExif(ImageBytes bytes) {
  constexpr size_t kSignature = 8, kFrame = 12;
  for (size_t at = kSignature; at + kFrame <= bytes.size();) {
    const size_t length = BigEndian(bytes.subspan(at));
    if (length > bytes.size() - at - kFrame) return {};
    const ImageBytes type = bytes.subspan(at + 4, 4);
    if (std::equal(type.begin(), type.end(), "eXIf")) return bytes.subspan(at + 8, length);
    at += length + kFrame;
  }
  return {};
}

int WebpOrientation(ImageBytes bytes) {
  const WebPData data{bytes.data(), bytes.size()};
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demuxer(WebPDemux(&data),
                                                                     &WebPDemuxDelete);
  WebPChunkIterator chunk;
  if (demuxer == nullptr || WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) == 0) return 1;
  const ImageBytes exif(chunk.chunk.bytes, chunk.chunk.size);
  const bool framed = exif.size() >= kExifHeader.size() &&
                      std::equal(kExifHeader.begin(), kExifHeader.end(), exif.begin(),
                                 [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
  const int orientation = framed ? OrientationOf(exif) : OrientationOfTiff(exif);
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

}  // namespace

int ReadOrientation(ImageFormat format, ImageBytes bytes) {
  switch (format) {
    case ImageFormat::kJpeg:
      return OrientationOf(bytes);
    case ImageFormat::kPng:
      return OrientationOfTiff(PngExif(bytes));
    case ImageFormat::kWebp:
      return WebpOrientation(bytes);
  }
  return 1;
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
