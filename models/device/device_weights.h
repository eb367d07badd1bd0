// Weights in a device's memory: one block, carved in the order of a family's structs, filled while
// the checkpoint is read. Norms, biases and tables are float, linears of the compute type.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/scratch.h"
#include "models/device/device_linear.h"
#include "models/device/device_memory.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

struct DeviceNorm {
  float* gamma = nullptr;
  float* beta = nullptr;
  float eps = 0;

  kernels::cuda::RowNorm view() const { return {gamma, beta, eps}; }
};

// Gives tensors their places, or counts their bytes where the carver has no memory.
class DevicePlaces {
 public:
  DevicePlaces(Compute compute, Carver& carver) : compute_(compute), carver_(carver) {}

  float* Floats(int64_t count) { return carver_.Take<float>(count); }
  // Elements of the compute type.
  void* Typed(int64_t count) {
    return carver_.TakeBytes(static_cast<size_t>(count * ElementBytes(compute_)));
  }
  DeviceNorm Norm(int64_t width, float eps) { return {Floats(width), Floats(width), eps}; }
  DeviceLinear Linear(int64_t out, int64_t in);

 private:
  const Compute compute_;
  Carver& carver_;
};

// Fills them. One per load, used within a Device::Turn. Throws DeviceError and what LibTorch
// throws.
class DeviceFill {
 public:
  explicit DeviceFill(const Device& device) : device_(device), upload_(device) {}

  // Weight and bias, and the panels they are multiplied in. INTERNAL: see ChooseDevicePanels;
  // INVALID_ARGUMENT: see PutTyped.
  absl::Status PutLinear(const std::string& name, std::span<const float> weight,
                         std::span<const float> bias, DeviceLinear& to);
  void PutNorm(const Norm& norm, const DeviceNorm& to);
  // In pieces, none of which stays on the host. Errors as TensorView::Read.
  absl::Status PutTable(const TensorView& table, float* to);
  void Put(std::span<const float> values, float* to) { upload_.Put(values, Compute::kFp32, to); }
  // Writes the compute type. INVALID_ARGUMENT, naming the tensor, if a value is beyond it.
  absl::Status PutTyped(const std::string& name, std::span<const float> values, Compute compute,
                        void* to);

 private:
  const Device& device_;
  WeightUpload upload_;
  DevicePanelRules rules_;
};

}  // namespace longview::models
