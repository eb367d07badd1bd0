// From a request to pixels: which field holds the image, decoding, the model's pipeline, sizes.
// Every mistake a client can make is found here.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "models/vision/family.h"
#include "models/vision/item.h"

namespace longview::models {

// Parts that requests are prepared with. Borrowed, immutable.
struct VisionFrontEnd {
  const VisionFamily* family = nullptr;
  std::optional<ImagePipeline> pipeline;  // Unset: pixel values only.
  DecodeLimits limits;
};

// "features.<stride>" to the stage's index; of stages with equal strides the last.
std::optional<int> StageOfTensor(const VisionFacts& facts, std::string_view tensor);
// Adds these outputs to info, one per stride.
void AddFeatureMaps(const VisionFacts& facts, bool by_default, ModelInfo& info);

// The checks that image models of every task share. INVALID_ARGUMENT names the field.
absl::Status CheckImageRequest(const Request& request);   // An image or pixels, no text.
absl::Status CheckPixelValues(const PixelInput& pixels);  // [3, H, W] of finite numbers.
// Whether the weights fit pixels of this size.
absl::Status CheckFamilySize(std::string_view field, const VisionFamily& family, ImageSize size);

// Whether the request asks what a picture of a size costs.
bool IsOutline(const Request& request);
// Name of the field of a request, or of an estimate, that gives the size of its pixels.
std::string_view PixelField(const Request& request);

// The item without its cost. Thread-safe.
absl::StatusOr<std::unique_ptr<ImageItem>> PrepareImageItem(const VisionFrontEnd& front,
                                                            const Request& request);

}  // namespace longview::models
