// Loading image models and backbones where options say: on the CPU, or with their stages on a
// device.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/vision/model.h"

namespace longview::models {

// Loads a family's configuration and weights, for the CPU without a device. The directory outlives
// what is returned. May throw DeviceError and what LibTorch throws; within the device's Turn.
using BuildVision = absl::FunctionRef<absl::StatusOr<std::unique_ptr<VisionFamily>>(
    const ModelDirectory& directory, Compute compute, std::unique_ptr<Device> device)>;

// The family on `device`, null: on the CPU, in the type that options and directory choose. What a
// device throws becomes a status.
absl::StatusOr<PlacedVision> BuildPlaced(const ModelDirectory& directory,
                                         const LoadOptions& options, std::unique_ptr<Device> device,
                                         BuildVision build);

// The model there.
absl::StatusOr<std::unique_ptr<Model>> LoadVisionOn(std::unique_ptr<Device> device,
                                                    ModelDirectory directory,
                                                    const LoadOptions& options, BuildVision build);

// The model where `options` say, with a note where a device was asked for in vain (DeviceForModel).
absl::StatusOr<std::unique_ptr<Model>> LoadVision(ModelDirectory directory,
                                                  const LoadOptions& options, BuildVision build);

}  // namespace longview::models
