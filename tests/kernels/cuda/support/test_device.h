// Devices that kernel tests run on: the emulated one in both thread orders, and CUDA's first device
// where there is one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/plugin_api.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda::testing {

class TestDevice {
 public:
  TestDevice(std::string name, const PluginApi& api);
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  const std::string& name() const { return name_; }
  const PluginApi& api() const { return api_; }
  Stream* stream() const { return stream_; }
  bool Runs(SpanKernel kernel) const {
    return kernel != SpanKernel::kWarpgroups || api_.span.warpgroups(0) != 0;
  }

  // Memory of the device until this is destroyed; fails the test if there is none.
  template <typename T>
  T* Allocate(size_t count) {
    return static_cast<T*>(AllocateBytes(count * sizeof(T)));
  }
  template <typename T>
  T* Upload(const std::vector<T>& values) {
    T* memory = Allocate<T>(values.size());
    CopyIn(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
  // Waits for the stream.
  template <typename T>
  std::vector<T> Download(const T* memory, size_t count) {
    std::vector<T> values(count);
    CopyOut(values.data(), memory, count * sizeof(T));
    return values;
  }

 private:
  void* AllocateBytes(size_t bytes);
  void CopyIn(void* to, const void* from, size_t bytes);
  void CopyOut(void* to, const void* from, size_t bytes);

  const std::string name_;
  const PluginApi& api_;
  Stream* stream_ = nullptr;
  std::vector<void*> memory_;
};

// Element types of tensors marked T, and their names in test output.
inline constexpr DType kDeviceTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
const char* TypeName(DType dtype);

// Elements of a 16-bit type, and back.
std::vector<uint16_t> Rounded(const std::vector<float>& values, DType dtype);
std::vector<float> Widened(const std::vector<uint16_t>& bits, DType dtype);

// Prints why CUDA is left out, once.
std::vector<std::unique_ptr<TestDevice>> TestDevices();

}  // namespace longview::kernels::cuda::testing
