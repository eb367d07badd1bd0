// Loading the plugin: on a machine without a driver it loads, counts no device and explains
// itself; on one with devices it lists them.
#include "kernels/cuda/plugin.h"

#include <gtest/gtest.h>

#include <string>

namespace longview::kernels::cuda {
namespace {

const std::string kPlugin = LONGVIEW_PLUGIN;

TEST(PluginTest, LoadsAndCountsTheDriversDevices) {
  if (kPlugin.empty()) GTEST_SKIP() << "this build has no CUDA compiler";
  const LoadedPlugin plugin = LoadPlugin(kPlugin);
  ASSERT_NE(plugin.api, nullptr) << plugin.reason;
  int32_t count = -1;
  ASSERT_EQ(plugin.api->device_count(&count), 0);
  EXPECT_EQ(count, CountDriverDevices().count);
  const std::vector<DeviceProperties> devices = ListDevices(*plugin.api);
  ASSERT_EQ(devices.size(), static_cast<size_t>(count));
  for (const DeviceProperties& device : devices) {
    EXPECT_GT(device.multiprocessors, 0);
    EXPECT_GE(device.major, 8) << device.name;
    EXPECT_GT(device.memory_bytes, 0);
  }
}

TEST(PluginTest, EveryFunctionIsThere) {
  if (kPlugin.empty()) GTEST_SKIP() << "this build has no CUDA compiler";
  const LoadedPlugin plugin = LoadPlugin(kPlugin);
  ASSERT_NE(plugin.api, nullptr) << plugin.reason;
  // The table is two numbers and pointers; none may be null.
  const auto* words = reinterpret_cast<const uintptr_t*>(plugin.api);
  for (size_t i = 1; i < sizeof(PluginApi) / sizeof(uintptr_t); ++i) EXPECT_NE(words[i], 0u) << i;
}

TEST(PluginTest, WithoutADeviceEveryCallIsAnError) {
  if (kPlugin.empty()) GTEST_SKIP() << "this build has no CUDA compiler";
  if (CountDriverDevices().count > 0) GTEST_SKIP() << "this machine has a device";
  const PluginApi& api = *LoadPlugin(kPlugin).api;
  void* memory = nullptr;
  const Status allocated = api.allocate(0, 1024, &memory);
  EXPECT_NE(allocated, 0);
  EXPECT_STRNE(api.error_text(allocated), "");
  EXPECT_NE(api.allocate_pinned(1024, &memory), 0);
  Stream* stream = nullptr;
  EXPECT_NE(api.create_stream(0, &stream), 0);
  DeviceProperties properties;
  EXPECT_NE(api.device_properties(0, &properties), 0);
}

TEST(PluginTest, WithoutADriverNothingIsLoaded) {
  const DriverDevices driver = CountDriverDevices();
  if (driver.count > 0) GTEST_SKIP() << "this machine has a device";
  EXPECT_NE(driver.reason, "");
  const LoadedPlugin plugin = FindPlugin();
  EXPECT_EQ(plugin.api, nullptr);
  EXPECT_EQ(plugin.reason, driver.reason);
}

TEST(PluginTest, AFileThatIsNoPluginIsRefusedWithItsName) {
  const LoadedPlugin missing = LoadPlugin("/no/such/longview_cuda.so");
  EXPECT_EQ(missing.api, nullptr);
  EXPECT_NE(missing.reason.find("/no/such/longview_cuda.so"), std::string::npos) << missing.reason;
  const LoadedPlugin other = LoadPlugin("libm.so.6");
  EXPECT_EQ(other.api, nullptr);
  EXPECT_NE(other.reason.find(kPluginSymbol), std::string::npos) << other.reason;
}

}  // namespace
}  // namespace longview::kernels::cuda
