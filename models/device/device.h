// A device that one instance of a model computes on: its memory, a stream of its own, and
// LibTorch's products on that stream.
//
// LibTorch's CUDA half is loaded by the first Open and stays in the process; machines without a
// driver never load it. Errors of the device are DeviceErrors, which GuardDevice makes a status,
// with the payload kDeviceLost if the device is lost to the process.
//
// Used by one thread at a time: that which loads, then the executor's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/plugin_api.h"
#include "models/dense/compute.h"
#include "models/device_error.h"

namespace longview::models {

class Device {
 public:
  // `name`: "cuda:0". NOT_FOUND: no such device, or no plugin for it; FAILED_PRECONDITION: LibTorch
  // cannot use it.
  static absl::StatusOr<std::unique_ptr<Device>> Open(std::string_view name);

  // A device whose memory is the host's, for tests of what runs on devices. Throws DeviceError.
  static std::unique_ptr<Device> OnHost(const kernels::cuda::PluginApi& api);

  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  int index() const { return index_; }
  const kernels::cuda::PluginApi& api() const { return api_; }
  kernels::cuda::Stream* stream() const { return stream_; }

  // Does it run attention by SpanKernel::kWarpgroups?
  bool warpgroups() const { return warpgroups_; }

  // Bytes that are free on the device.
  int64_t FreeBytes() const;

  // Throws DeviceError, "cuda:0: `what`: ...", unless `status` is 0. The device is lost if another
  // call fails too.
  void Check(kernels::cuda::Status status, const char* what) const;

  // Waits until the stream is done.
  void Wait() const { Check(api_.synchronize(stream_), "waiting for results"); }

  // While it lives, LibTorch's work of this thread goes to the device's stream.
  class Turn {
   public:
    explicit Turn(const Device& device);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    struct Guard;
    std::unique_ptr<Guard> guard_;
  };

  // y = x W^T for `rows` rows: x [rows, in], W [out, in], y [rows, out], all dense in device
  // memory, of the compute type; float is multiplied as such, never in TF32. Within a Turn. Throws
  // what LibTorch throws.
  struct Product {
    const void* x = nullptr;
    const void* weight = nullptr;
    void* y = nullptr;
    int64_t rows = 0;
    int64_t in = 0;
    int64_t out = 0;
    Compute compute = Compute::kFp32;
  };
  void Multiply(const Product& product) const;

 private:
  struct Torch;  // LibTorch's names for the device and its stream.

  Device(std::string name, int index, const kernels::cuda::PluginApi& api,
         std::unique_ptr<Torch> torch);

  const std::string name_;
  const int index_;
  const kernels::cuda::PluginApi& api_;
  const std::unique_ptr<Torch> torch_;
  kernels::cuda::Stream* stream_ = nullptr;
  bool warpgroups_ = false;
};

// Device of a model that is to run on `name`: a CUDA device, or null for the CPU. Without
// LibTorch's CUDA half that is the CPU too, with a note: no reason not to serve. Errors as
// Device::Open.
absl::StatusOr<std::unique_ptr<Device>> DeviceForModel(const std::string& name,
                                                       std::vector<std::string>& notes);

// Runs `body`; what a device, LibTorch or the allocator throws becomes a status that begins with
// `what`.
absl::Status GuardDevice(const std::string& what, absl::FunctionRef<void()> body);

}  // namespace longview::models
