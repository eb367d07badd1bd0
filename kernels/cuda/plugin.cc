#include "kernels/cuda/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>

namespace longview::kernels::cuda {
namespace {

constexpr char kDriverLibrary[] = "libcuda.so.1";
constexpr char kPluginFile[] = "longview_cuda.so";

// Folder of the running program; empty if it cannot be told.
std::string ProgramFolder() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0 || size == static_cast<ssize_t>(path.size())) return {};
  const std::string program(path.data(), size);
  return program.substr(0, program.rfind('/'));
}

}  // namespace

DriverDevices CountDriverDevices() {
  void* driver = dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return {0, "there is no CUDA driver (libcuda.so.1) on this machine"};
  using Init = int (*)(unsigned);
  using Count = int (*)(int*);
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<Count>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count == nullptr) return {0, "libcuda.so.1 is not a CUDA driver"};
  int devices = 0;
  if (const int error = init(0); error != 0) {
    return {0, "the CUDA driver does not start: error " + std::to_string(error)};
  }
  if (const int error = count(&devices); error != 0) {
    return {0, "the CUDA driver does not list devices: error " + std::to_string(error)};
  }
  if (devices == 0) return {0, "the CUDA driver sees no device"};
  return {devices, ""};
}

LoadedPlugin LoadPlugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, dlerror()};
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginSymbol));
  if (entry == nullptr) return {nullptr, path + " does not export " + kPluginSymbol};
  const PluginApi* api = entry();
  if (api->abi != kPluginAbi || api->bytes != sizeof(PluginApi)) {
    return {nullptr, path + " is of another build: interface " + std::to_string(api->abi) + ", " +
                         std::to_string(api->bytes) + " bytes; this one needs " +
                         std::to_string(kPluginAbi) + ", " + std::to_string(sizeof(PluginApi))};
  }
  return {api, ""};
}

LoadedPlugin FindPlugin() {
  const DriverDevices driver = CountDriverDevices();
  if (driver.count == 0) return {nullptr, driver.reason};
  const std::string folder = ProgramFolder();
  std::string tried;
  for (const std::string& path : {folder + "/" + kPluginFile, folder + "/../lib/" + kPluginFile}) {
    tried += (tried.empty() ? "" : ", ") + path;
    if (access(path.c_str(), R_OK) == 0) return LoadPlugin(path);
  }
  return {nullptr, "this build has no CUDA plugin (tried " + tried + ")"};
}

std::vector<DeviceProperties> ListDevices(const PluginApi& api) {
  int32_t count = 0;
  if (api.device_count(&count) != 0) return {};
  std::vector<DeviceProperties> devices(count);
  for (int32_t i = 0; i < count; ++i) {
    if (api.device_properties(i, &devices[i]) != 0) return {};
  }
  return devices;
}

}  // namespace longview::kernels::cuda
