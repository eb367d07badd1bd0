#include "tests/kernels/cuda/support/test_device.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <utility>

#include "kernels/cuda/base/element.h"
#include "kernels/cuda/plugin.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"

namespace longview::kernels::cuda::testing {
namespace {

// The plugin where there is a device for it.
const PluginApi* Plugin() {
  static const LoadedPlugin plugin = [] {
    LoadedPlugin found = FindPlugin();
    if (found.api == nullptr) std::printf("not run on CUDA: %s\n", found.reason.c_str());
    return found;
  }();
  return plugin.api;
}

}  // namespace

TestDevice::TestDevice(std::string name, const PluginApi& api) : name_(std::move(name)), api_(api) {
  EXPECT_EQ(api_.create_stream(0, &stream_), 0);
}

TestDevice::~TestDevice() {
  EXPECT_EQ(api_.destroy_stream(stream_), 0);
  for (void* memory : memory_) EXPECT_EQ(api_.release(0, memory), 0);
}

void* TestDevice::AllocateBytes(size_t bytes) {
  void* memory = nullptr;
  EXPECT_EQ(api_.allocate(0, bytes, &memory), 0);
  memory_.push_back(memory);
  return memory;
}

void TestDevice::CopyIn(void* to, const void* from, size_t bytes) {
  EXPECT_EQ(api_.copy_in(stream_, to, from, bytes), 0);
  EXPECT_EQ(api_.synchronize(stream_), 0);
}

void TestDevice::CopyOut(void* to, const void* from, size_t bytes) {
  EXPECT_EQ(api_.copy_out(stream_, to, from, bytes), 0);
  EXPECT_EQ(api_.synchronize(stream_), 0);
}

const char* TypeName(DType dtype) {
  return dtype == DType::kFloat32 ? "fp32" : dtype == DType::kBFloat16 ? "bf16" : "fp16";
}

std::vector<uint16_t> Rounded(const std::vector<float>& values, DType dtype) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(Of16(dtype, value));
  return bits;
}

std::vector<float> Widened(const std::vector<uint16_t>& bits, DType dtype) {
  std::vector<float> values;
  for (const uint16_t element : bits) values.push_back(FloatOf16(dtype, element));
  return values;
}

std::vector<std::unique_ptr<TestDevice>> TestDevices() {
  std::vector<std::unique_ptr<TestDevice>> devices;
  devices.push_back(std::make_unique<TestDevice>("threads rising", EmulatedPlugin()));
  devices.push_back(
      std::make_unique<TestDevice>("threads falling", EmulatedPlugin(ThreadOrder::kFalling)));
  if (Plugin() != nullptr) devices.push_back(std::make_unique<TestDevice>("CUDA", *Plugin()));
  return devices;
}

}  // namespace longview::kernels::cuda::testing
