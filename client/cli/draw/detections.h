// Pictures that `detect --draw` makes, with what was found in them (masks tinted, boxes framed,
// labels with their scores), and where they go.
// Thread-safe but for the folder that PlacesOf makes.
#pragma once

#include <cstdint>
#include <map>
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

// The PNG file of each input path. One input goes to the file `target`, unless that is a directory;
// in a directory (made if `target` ends with a slash) each has its own name with .png for its
// ending, and a number where two have the same. Several inputs need a directory: INVALID_ARGUMENT
// else, or where it cannot be made.
absl::StatusOr<std::map<std::string, std::string>> PlacesOf(const std::vector<std::string>& inputs,
                                                            const std::string& target);

}  // namespace longview::client
