// A picture with what was found in it: masks tinted, boxes framed, labels with their scores.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/draw/picture.h"
#include "longview/v1/vision.pb.h"

namespace longview::client {

// Run lengths of a mask, columns first, pixels outside first, from {"size": [H, W], "counts": ...}.
// INVALID_ARGUMENT if the text is something else or does not fit the picture.
absl::StatusOr<std::vector<uint32_t>> MaskRuns(const std::string& coco, int width, int height);

// Draws the best last, so that it lies on top. The colour says the class. INVALID_ARGUMENT if a
// mask does not fit the picture.
absl::Status DrawDetections(const longview::v1::DetectObjectsResponse& response, Picture& picture);

}  // namespace longview::client
