// Vision Longformer and ViL-LS as Models.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "models/device/device_workspace.h"
#include "models/model.h"
#include "models/model_directory.h"
#include "models/vil/config.h"
#include "models/vil/weights.h"
#include "models/vision/backbone.h"

namespace longview::models {

// The functions of registry.h.
absl::StatusOr<ModelInfo> DescribeVil(const ModelDirectory& directory);
absl::StatusOr<ModelInfo> DescribeVilLs(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadVil(ModelDirectory directory,
                                               const LoadOptions& options);
absl::StatusOr<std::unique_ptr<Model>> LoadVilLs(ModelDirectory directory,
                                                 const LoadOptions& options);

using ParseVilFamily = absl::StatusOr<VilConfig> (*)(const nlohmann::json& config,
                                                    const CommonConfig& common,
                                                    const std::string& origin, bool backbone);

// The family on a device; `place`: of a backbone's tensors, else null. As
// BackboneBuilder::build_on_device.
absl::StatusOr<std::unique_ptr<VisionFamily>> BuildDeviceVil(
    const ModelDirectory& directory, const BackbonePlace* place, Compute compute,
    std::unique_ptr<Device> device, int64_t most_pixels, ParseVilFamily parse);

// The most that one picture of this size needs on a device, with weights that may have sizes alone.
DeviceRunBytes DeviceVilBytes(const VilConfig& config, const VilWeights& weights, Compute compute,
                              ImageSize size);

// As a detector's backbone: "vil", "vil_ls".
BackboneBuilder VilBackbone();
BackboneBuilder VilLsBackbone();

}  // namespace longview::models
