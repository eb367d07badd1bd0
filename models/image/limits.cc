#include "models/image/limits.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace longview::models {

ImageSize SeenSize(const ImagePipeline& pipeline, const ImageHeader& header) {
  const bool turned = pipeline.rotate && header.orientation >= 5;
  return turned ? ImageSize{header.width, header.height} : ImageSize{header.height, header.width};
}

absl::Status CheckPixelCount(std::string_view field, const ImagePipeline& pipeline, ImageSize given,
                             const DecodeLimits& limits) {
  const auto check = [&](ImageSize size, const std::string& how) -> absl::Status {
    const int64_t pixels = int64_t{size.height} * size.width;
    if (pixels <= limits.max_pixels) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", given.width, " x ",
                                                   given.height, how, " is ", pixels,
                                                   " pixels, the limit is ", limits.max_pixels));
  };
  if (absl::Status status = check(given, ""); !status.ok()) return status;
  const ImageSize size = pipeline.ResizedSize(given);
  return check(size, absl::StrCat(" resized to ", size.width, " x ", size.height));
}

}  // namespace longview::models
