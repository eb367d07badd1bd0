// Image models and backbones as the registry and detectors describe and load them: on the CPU, or
// with their stages on a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/vision/backbone.h"
#include "models/vision/model.h"

namespace longview::models {

// The family on `device`, null: on the CPU, in the type that options and directory choose. What a
// device throws becomes a status. `notes` come first.
absl::StatusOr<PlacedVision> BuildPlaced(std::unique_ptr<Device> device,
                                         const ModelDirectory& directory,
                                         const LoadOptions& options, const VisionBuilder& builder,
                                         const BackbonePlace* place,
                                         std::vector<std::string> notes);

// For registry.h's `describe`. Errors are those of parsing, names, shapes and
// preprocessor_config.json.
absl::StatusOr<ModelInfo> DescribeVision(const ModelDirectory& directory,
                                         const VisionBuilder& builder);

// The model as BuildPlaced.
absl::StatusOr<std::unique_ptr<Model>> LoadVisionAt(std::unique_ptr<Device> device,
                                                    ModelDirectory directory,
                                                    const LoadOptions& options,
                                                    const VisionBuilder& builder,
                                                    std::vector<std::string> notes = {});

}  // namespace longview::models
