// Sizes of a decoded picture by its header, before a pixel is decoded or allocated.
// Thread-safe: pure functions.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "models/image/decode.h"
#include "models/image/pipeline.h"

namespace longview::models {

// Size of the picture behind this header, turned if the pipeline turns it.
ImageSize SeenSize(const ImagePipeline& pipeline, const ImageHeader& header);

// INVALID_ARGUMENT that begins with `field`: a picture of this size, or what resizing makes of it,
// has more pixels than the limit.
absl::Status CheckPixelCount(std::string_view field, const ImagePipeline& pipeline, ImageSize given,
                             const DecodeLimits& limits);

}  // namespace longview::models
