// From a request to the pictures a detector runs on. Every mistake a client can make is found here.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "models/detection/config.h"
#include "models/detection/item.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "models/vision/family.h"

namespace longview::models {

// Detections that one request may ask for.
inline constexpr int kMostDetections = 1000;

// Parts that requests are prepared with. Borrowed, immutable.
struct DetectionFrontEnd {
  const VisionFamily* backbone = nullptr;
  const DetectorConfig* config = nullptr;
  std::optional<ImagePipeline> pipeline;  // Unset: pixel values only.
  int divisor = 32;                       // Padded sides are multiples of it.
  DecodeLimits limits;
};

// The item without its cost. Thread-safe.
absl::StatusOr<std::unique_ptr<DetectionItem>> PrepareDetection(const DetectionFrontEnd& front,
                                                                const Request& request);

}  // namespace longview::models
