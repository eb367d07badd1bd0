#include "tests/models/device/device_places.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <utility>

#include "kernels/cuda/plugin.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"

namespace longview::models {

using kernels::cuda::PluginApi;
using kernels::cuda::ThreadOrder;
using kernels::cuda::testing::EmulatedPlugin;

std::vector<DevicePlace> PlacesOfDevices() {
  std::vector<DevicePlace> places = {
      {"host", [] { return Device::OnHost(EmulatedPlugin()); }},
      {kFallingPlace, [] { return Device::OnHost(EmulatedPlugin(ThreadOrder::kFalling)); }}};
  const kernels::cuda::DriverDevices driver = kernels::cuda::CountDriverDevices();
  if (driver.count > 0) {
    places.push_back({"cuda:0", [] {
                        absl::StatusOr<std::unique_ptr<Device>> device = Device::Open("cuda:0");
                        EXPECT_TRUE(device.ok()) << device.status();
                        return device.ok() ? *std::move(device) : nullptr;
                      }});
  } else {
    std::printf("not run on CUDA: %s\n", driver.reason.c_str());
  }
  return places;
}

namespace {

uint64_t free_bytes_of_host = 0;

}  // namespace

PluginApi EmulatedPluginWith(uint64_t free_bytes) {
  free_bytes_of_host = free_bytes;
  PluginApi api = EmulatedPlugin();
  api.free_memory = [](int32_t, uint64_t* left) -> kernels::cuda::Status {
    *left = free_bytes_of_host;
    return 0;
  };
  return api;
}

}  // namespace longview::models
