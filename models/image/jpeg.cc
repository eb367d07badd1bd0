// JPEG by libjpeg-turbo's TurboJPEG interface.
#include <turbojpeg.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/image/codec.h"
#include "models/image/undecodable.h"

namespace longview::models {
namespace {

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Decompressor = std::unique_ptr<void, Destroy>;

struct JpegHeader {
  int width = 0, height = 0, subsampling = 0, colours = 0;
};

absl::Status Broken(tjhandle handle) {
  return Undecodable(absl::StrCat("image: JPEG: ", tjGetErrorStr2(handle)));
}

absl::StatusOr<JpegHeader> ReadHeader(tjhandle handle, ImageBytes bytes) {
  JpegHeader header;
  if (tjDecompressHeader3(handle, bytes.data(), bytes.size(), &header.width, &header.height,
                          &header.subsampling, &header.colours) != 0 &&
      tjGetErrorCode(handle) == TJERR_FATAL) {
    return Broken(handle);
  }
  return header;
}

// libjpeg only warns of a file that ends too early, and only its last warning can be asked for.
// Entropy-coded data hold no marker, so a whole file has an end marker behind its last scan.
bool Truncated(ImageBytes bytes) {
  constexpr uint8_t kScan[] = {0xFF, 0xDA}, kEnd[] = {0xFF, 0xD9};
  const auto scan = std::find_end(bytes.begin(), bytes.end(), kScan, kScan + 2);
  return std::search(scan, bytes.end(), kEnd, kEnd + 2) == bytes.end();
}

// Pillow's formula for inverted CMYK, which is how JPEG files hold it.
void CmykToRgb(const uint8_t* cmyk, size_t pixels, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i) {
    const int white = cmyk[4 * i + 3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[4 * i + c]) * white + 128;
      rgb[3 * i + c] = static_cast<uint8_t>(white - (((product >> 8) + product) >> 8));
    }
  }
}

}  // namespace

absl::StatusOr<ImageHeader> ReadJpegHeader(ImageBytes bytes) {
  const Decompressor handle(tjInitDecompress());
  if (handle == nullptr) return absl::ResourceExhaustedError("image: no memory for a JPEG decoder");
  const absl::StatusOr<JpegHeader> header = ReadHeader(handle.get(), bytes);
  if (!header.ok()) return header.status();
  return ImageHeader{.width = header->width, .height = header->height};
}

absl::Status DecodeJpeg(ImageBytes bytes, Raster& out) {
  const Decompressor handle(tjInitDecompress());
  if (handle == nullptr) return absl::ResourceExhaustedError("image: no memory for a JPEG decoder");
  const absl::StatusOr<JpegHeader> header = ReadHeader(handle.get(), bytes);
  if (!header.ok()) return header.status();
  const bool cmyk = header->colours == TJCS_CMYK || header->colours == TJCS_YCCK;
  const size_t pixels = size_t{1} * out.width * out.height;
  std::vector<uint8_t> inks(cmyk ? 4 * pixels : 0);
  // A file of very many scans costs decoding time out of all proportion to its size.
  if (tjDecompress2(handle.get(), bytes.data(), bytes.size(), cmyk ? inks.data() : out.rgb.data(),
                    out.width, 0, out.height, cmyk ? TJPF_CMYK : TJPF_RGB,
                    TJFLAG_LIMITSCANS) != 0 &&
      (tjGetErrorCode(handle.get()) == TJERR_FATAL || Truncated(bytes))) {
    return Broken(handle.get());
  }
  if (cmyk) CmykToRgb(inks.data(), pixels, out.rgb.data());
  return absl::OkStatus();
}

}  // namespace longview::models
