// Composite Slice encoders with their layers on a device and their heads on the host.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/dense/compute.h"
#include "models/device/device.h"
#include "models/encoder/family.h"
#include "models/model_directory.h"

namespace longview::models {

// A BuildDeviceEncoder; see BuildOnDevice.
absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildDeviceCst(const ModelDirectory& directory,
                                                              Compute compute,
                                                              std::unique_ptr<Device> device);

}  // namespace longview::models
