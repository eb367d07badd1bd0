// Loading image models whose stages are on a device.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/vision/backbone.h"
#include "models/vision/model.h"

namespace longview::models {

// Loads a family's configuration and weights; as BuildVision. May throw DeviceError and
// what LibTorch throws; within a Device::Turn.
using BuildDeviceVision = absl::FunctionRef<absl::StatusOr<std::unique_ptr<VisionFamily>>(
    const ModelDirectory& directory, Compute compute, std::unique_ptr<Device> device)>;

// Builds a family in its device's turn; what is thrown becomes a status.
absl::StatusOr<std::unique_ptr<VisionFamily>> BuildOnDevice(const ModelDirectory& directory,
                                                            Compute compute,
                                                            std::unique_ptr<Device> device,
                                                            BuildDeviceVision build);

// The model on `device`.
absl::StatusOr<std::unique_ptr<Model>> LoadDeviceVision(ModelDirectory directory,
                                                        const LoadOptions& options,
                                                        std::unique_ptr<Device> device,
                                                        BuildDeviceVision build);

// The model where `options` say: on a device by `on_device`, else on the CPU by `on_cpu`, with a
// note where a device was asked for (DeviceForModel).
absl::StatusOr<std::unique_ptr<Model>> LoadVision(ModelDirectory directory,
                                                  const LoadOptions& options, BuildVision on_cpu,
                                                  BuildDeviceVision on_device);

}  // namespace longview::models
