// From a picture to what a model reads: preprocessor_config.json as HuggingFace writes it, with
// the rules of the original ViL repositories.
//
//   ViLImageProcessor           shorter side to size, longer floor(size * long / short), centre
//                               crop with round-half-even offsets
//   ViLDetectionImageProcessor  shorter side to size, longer at most longest_edge, both
//                               floor(x + 0.5); after normalisation zeros at the right and the
//                               bottom up to multiples of size_divisor
//
// Pictures are turned as their files say (HuggingFace's load_image); `apply_exif_orientation`
// (ours) false leaves them as they lie.
// Thread-safe once read.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/image/decode.h"
#include "models/image/raster.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

struct ImageSize {
  int height = 0;
  int width = 0;
  bool operator==(const ImageSize&) const = default;
};

// A model's input: [3, height, width], normalised.
struct PixelValues {
  ImageSize size;
  std::vector<float> values;
};

// A picture made ready, and the way back to the given one.
struct PreparedImage {
  PixelValues pixels;
  ImageSize given;    // Seen size, after rotation.
  ImageSize resized;  // Before cropping or padding.
};

struct ImagePipeline {
  enum class Rule { kClassification, kDetection };

  Rule rule = Rule::kClassification;
  bool rotate = true;              // By the file's orientation.
  std::optional<ImageSize> sides;  // Sides after resizing; unset: by shortest_edge.
  int shortest_edge = 0;           // Shorter side after resizing; 0 without `sides`: no resize.
  int longest_edge = 0;            // Limit of the longer side; 0: none.
  Resample resample = Resample::kBicubic;
  std::optional<ImageSize> crop;
  double rescale_factor = 1;
  std::array<double, 3> mean = {0, 0, 0};
  std::array<double, 3> std = {1, 1, 1};
  int size_divisor = 1;

  // Never below 1 pixel.
  ImageSize ResizedSize(ImageSize given) const;
  // The size that the model gets for a picture of size `given`.
  ImageSize FinalSize(ImageSize given) const;

  // Decodes, rotates, resizes, crops, normalises, pads.
  absl::StatusOr<PreparedImage> Run(ImageBytes bytes, const DecodeLimits& limits) const;
  // Run on a decoded picture that is turned already.
  PreparedImage Run(const Raster& picture) const;
  // The two halves of it.
  Raster Resize(const Raster& picture) const;
  PixelValues Normalize(const Raster& resized) const;
};

// Reads the parsed preprocessor_config.json. INVALID_ARGUMENT names file, key and value; keys that
// nothing here knows are refused, as each could change every pixel.
absl::StatusOr<ImagePipeline> ReadImagePipeline(const nlohmann::json& config,
                                                const std::string& origin);

// Size of the picture behind this header, turned if the pipeline turns it: known before a pixel is
// decoded or allocated. Thread-safe, like the next.
ImageSize SeenSize(const ImagePipeline& pipeline, const ImageHeader& header);

// INVALID_ARGUMENT that begins with `field`: a picture of this size, or what resizing makes of it,
// has more pixels than the limit.
absl::Status CheckPixelCount(std::string_view field, const ImagePipeline& pipeline, ImageSize given,
                             const DecodeLimits& limits);

}  // namespace longview::models
