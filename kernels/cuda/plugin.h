// Finds and loads the CUDA plugin at run time.
//
// Thread-safe: a loaded plugin is a constant table. The library stays in the process for good
// (CUDA's runtime cannot be unloaded), so a Plugin owns nothing and is cheap to copy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/plugin_api.h"

namespace longview::kernels::cuda {

struct LoadedPlugin {
  const PluginApi* api = nullptr;  // Null: `reason` says why.
  std::string reason;
};

// Loads the library at `path` and checks that it comes from this build. Asks for no driver.
LoadedPlugin LoadPlugin(const std::string& path);

// The plugin of this installation, if this machine has a use for it: a driver that sees a device.
// Looks for longview_cuda.so beside the running program, then in ../lib. Without a driver nothing
// is loaded.
LoadedPlugin FindPlugin();

// Devices the driver sees, without the plugin; 0 with a reason where there is no driver.
struct DriverDevices {
  int count = 0;
  std::string reason;
};
DriverDevices CountDriverDevices();

// Properties of every device, in CUDA's order (CUDA_VISIBLE_DEVICES applies). Empty on an error.
std::vector<DeviceProperties> ListDevices(const PluginApi& api);

}  // namespace longview::kernels::cuda
