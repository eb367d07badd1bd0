// Vision Longformer and ViL-LS with their stages on a device and their head on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/vil/config.h"
#include "models/vision/backbone.h"
#include "models/vision/device_model.h"

namespace longview::models {

// Of a configuration: ParseVilConfig, ParseVilLsConfig.
using ParseVilFamily = absl::StatusOr<VilConfig> (*)(const nlohmann::json& config,
                                                     const CommonConfig& common,
                                                     const std::string& origin, bool backbone);

// For LoadVision and as a backbone, whose tensors are at `place`, else null. `most_pixels`: of the
// largest picture that there may be. RESOURCE_EXHAUSTED if weights and the work on one picture of
// the model's own size do not fit the device's free memory: the message has need and limit.
absl::StatusOr<std::unique_ptr<VisionFamily>> BuildDeviceVil(
    const ModelDirectory& directory, const BackbonePlace* place, Compute compute,
    std::unique_ptr<Device> device, int64_t most_pixels, ParseVilFamily parse);

}  // namespace longview::models
