// The share of its device that a model was given at load.
#pragma once

#include <cstddef>
#include <memory>

#include "models/dense/compute.h"
#include "models/device/device.h"
#include "models/device/device_workspace.h"

namespace longview::models {

struct DevicePlacement {
  std::unique_ptr<const Device> device;
  Compute compute = Compute::kFp32;
  size_t weight_bytes = 0;  // In the device's memory.
  DeviceRunBytes room;      // For the workspace.
};

}  // namespace longview::models
