// Longformer with its layers on a device and its heads on the host.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

// RESOURCE_EXHAUSTED if weights and the work on the longest document do not fit the device's free
// memory: the message has need and limit.
absl::StatusOr<std::unique_ptr<Model>> LoadDeviceLongformer(ModelDirectory directory,
                                                            const LoadOptions& options,
                                                            std::unique_ptr<Device> device);

}  // namespace longview::models
