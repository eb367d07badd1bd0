// Longformer with its layers on a device and its heads on the host.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/dense/compute.h"
#include "models/device/device.h"
#include "models/encoder/family.h"
#include "models/model_directory.h"

namespace longview::models {

// A BuildDeviceEncoder. RESOURCE_EXHAUSTED if weights and the work on the longest document do not
// fit the device's free memory: the message has need and limit.
absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildDeviceLongformer(
    const ModelDirectory& directory, Compute compute, std::unique_ptr<Device> device);

}  // namespace longview::models
