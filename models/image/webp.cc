// WebP by libwebp.
#include <webp/decode.h>

#include "absl/strings/str_cat.h"
#include "models/image/codec.h"
#include "models/image/undecodable.h"

namespace longview::models {

absl::StatusOr<ImageHeader> ReadWebpHeader(ImageBytes bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status != VP8_STATUS_OK) {
    return Undecodable(
        absl::StrCat("image: WebP: broken header (libwebp status ", static_cast<int>(status), ")"));
  }
  if (features.has_animation != 0) {
    return Undecodable("image: WebP: animations are not pictures; send one frame");
  }
  return ImageHeader{.width = features.width, .height = features.height};
}

absl::Status DecodeWebp(ImageBytes bytes, Raster& out) {
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), out.rgb.data(), out.rgb.size(),
                        3 * out.width) == nullptr) {
    return Undecodable("image: WebP: the data are damaged or truncated");
  }
  return absl::OkStatus();
}

}  // namespace longview::models
