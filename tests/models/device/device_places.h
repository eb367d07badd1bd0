// The devices on which tests run models: one that is the host, and CUDA's first device where there
// is one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/plugin_api.h"
#include "models/device/device.h"

namespace longview::models {

// Name of the host with threads in falling order.
inline constexpr char kFallingPlace[] = "host, threads falling";

struct DevicePlace {
  std::string name;
  std::function<std::unique_ptr<Device>()> open;
};

// The host in both orders of threads, and CUDA; why not CUDA is printed.
std::vector<DevicePlace> PlacesOfDevices();

// The host's device with so much free memory. The last call's bytes count, for all of them.
kernels::cuda::PluginApi EmulatedPluginWith(uint64_t free_bytes);

}  // namespace longview::models
