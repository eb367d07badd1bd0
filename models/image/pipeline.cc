#include "models/image/pipeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"

namespace longview::models {

namespace {

int RoundUp(int value, int to) { return (value + to - 1) / to * to; }

// By the parity of the sum of bits: halves go to the even neighbour.
int HalfRoundedToEven(int value) {
  const int half = value / 2;
  return value % 2 != 0 && half % 2 != 0 ? half + 1 : half;
}

// Bounds a side that only CheckPixels sees when it is so long.
int Bounded(double side) {
  return static_cast<int>(std::min(side, double{std::numeric_limits<int>::max()}));
}

// floor(x + 0.5) of both sides, the shorter one exact, the longer one bounded.
ImageSize DetectionSize(ImageSize given, double shortest, double longest) {
  const double scale = shortest / std::min(given.height, given.width);
  double height = given.height < given.width ? shortest : scale * given.height;
  double width = given.height < given.width ? scale * given.width : shortest;
  const double larger = std::max(height, width);
  if (longest > 0 && larger > longest) {
    height *= longest / larger;
    width *= longest / larger;
  }
  return {Bounded(height + 0.5), Bounded(width + 0.5)};
}

ImageSize ClassificationSize(ImageSize given, int shortest) {
  const int64_t shorter = std::min(given.height, given.width);
  const int64_t longer = std::max(given.height, given.width);
  const int target = static_cast<int>(
      std::min<int64_t>(shortest * longer / shorter, std::numeric_limits<int>::max()));
  return given.height < given.width ? ImageSize{shortest, target} : ImageSize{target, shortest};
}

// The value of every level of a channel.
std::array<float, 256> Levels(const ImagePipeline& pipeline, int channel) {
  std::array<float, 256> levels;
  for (int v = 0; v < 256; ++v) {
    levels[v] = static_cast<float>((v * pipeline.rescale_factor - pipeline.mean[channel]) /
                                   pipeline.std[channel]);
  }
  return levels;
}

}  // namespace

ImageSize ImagePipeline::ResizedSize(ImageSize given) const {
  ImageSize size = given;
  if (sides) {
    size = *sides;
  } else if (shortest_edge > 0) {
    size = rule == Rule::kDetection ? DetectionSize(given, shortest_edge, longest_edge)
                                    : ClassificationSize(given, shortest_edge);
  }
  return {std::max(1, size.height), std::max(1, size.width)};
}

ImageSize ImagePipeline::FinalSize(ImageSize given) const {
  const ImageSize size = crop.value_or(ResizedSize(given));
  return {RoundUp(size.height, size_divisor), RoundUp(size.width, size_divisor)};
}

Raster ImagePipeline::Resize(const Raster& picture) const {
  const ImageSize size = ResizedSize({picture.height, picture.width});
  return Resized(picture, size.width, size.height, resample);
}

PixelValues ImagePipeline::Normalize(const Raster& resized) const {
  PixelValues out;
  const ImageSize used = crop.value_or(ImageSize{resized.height, resized.width});
  const int top = HalfRoundedToEven(resized.height - used.height);
  const int left = HalfRoundedToEven(resized.width - used.width);
  out.size = {RoundUp(used.height, size_divisor), RoundUp(used.width, size_divisor)};
  const auto [height, width] = out.size;
  out.values.resize(size_t{3} * height * width);
  for (int c = 0; c < 3; ++c) {
    const std::array<float, 256> levels = Levels(*this, c);
    for (int y = 0; y < used.height; ++y) {
      const uint8_t* from = resized.row(top + y) + 3 * left + c;
      float* to = out.values.data() + (size_t{1} * c * height + y) * width;
      for (int x = 0; x < used.width; ++x) to[x] = levels[from[3 * x]];
    }
  }
  return out;
}

PreparedImage ImagePipeline::Run(const Raster& picture) const {
  const Raster resized = Resize(picture);
  return {Normalize(resized), {picture.height, picture.width}, {resized.height, resized.width}};
}

absl::StatusOr<PreparedImage> ImagePipeline::Run(ImageBytes bytes,
                                                 const DecodeLimits& limits) const {
  ASSIGN_OR_RETURN(const ImageHeader header, ReadImageHeader(bytes, limits));
  const ImageSize given = SeenSize(*this, header);
  RETURN_IF_ERROR(CheckPixelCount("image", *this, given, limits));
  ASSIGN_OR_RETURN(Raster picture, DecodeImage(bytes, limits, rotate));
  return Run(picture);
}

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
  RETURN_IF_ERROR(check(given, ""));
  const ImageSize size = pipeline.ResizedSize(given);
  return check(size, absl::StrCat(" resized to ", size.width, " x ", size.height));
}

}  // namespace longview::models
