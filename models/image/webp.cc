// WebP by libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/image/codec.h"
#include "models/image/orientation.h"

namespace longview::models {
namespace {

using Demuxer = std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)>;
using Animation = std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)>;

absl::Status Damaged() { return Undecodable("image: WebP: the data are damaged or truncated"); }

std::string ChunkOf(const WebPDemuxer* demuxer, const char* type) {
  WebPChunkIterator chunk;
  if (WebPDemuxGetChunk(demuxer, type, 1, &chunk) == 0) return "";
  std::string data(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
  WebPDemuxReleaseChunkIterator(&chunk);
  return data;
}

// The first picture of an animation.
absl::Status DecodeFirst(const WebPData& data, Raster& out) {
  const Animation animation(WebPAnimDecoderNew(&data, nullptr), &WebPAnimDecoderDelete);
  WebPAnimInfo info;
  if (animation == nullptr || WebPAnimDecoderGetInfo(animation.get(), &info) == 0 ||
      static_cast<int64_t>(info.canvas_width) != out.width ||
      static_cast<int64_t>(info.canvas_height) != out.height) {
    return Damaged();
  }
  uint8_t* rgba = nullptr;
  int milliseconds = 0;
  if (WebPAnimDecoderGetNext(animation.get(), &rgba, &milliseconds) == 0) {
    return Damaged();
  }
  const size_t pixels = size_t{1} * out.width * out.height;
  for (size_t i = 0; i < pixels; ++i) std::copy_n(rgba + 4 * i, 3, out.rgb.data() + 3 * i);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageHeader> ReadWebpHeader(ImageBytes bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status != VP8_STATUS_OK) {
    return Undecodable(
        absl::StrCat("image: WebP: broken header (libwebp status ", static_cast<int>(status), ")"));
  }
  const WebPData data{bytes.data(), bytes.size()};
  const Demuxer demuxer(WebPDemux(&data), &WebPDemuxDelete);
  if (demuxer == nullptr) return Damaged();
  OrientationNotes notes;
  std::string exif = ChunkOf(demuxer.get(), "EXIF");
  if (!exif.empty()) notes.exif = std::move(exif);
  notes.xmp = ChunkOf(demuxer.get(), "XMP ");
  return ImageHeader{
      .width = features.width, .height = features.height, .orientation = StatedOrientation(notes)};
}

absl::Status DecodeWebp(ImageBytes bytes, Raster& out) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) return Damaged();
  if (features.has_animation != 0) return DecodeFirst({bytes.data(), bytes.size()}, out);
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), out.rgb.data(), out.rgb.size(),
                        3 * out.width) == nullptr) {
    return Damaged();
  }
  return absl::OkStatus();
}

}  // namespace longview::models
