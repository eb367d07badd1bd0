// Linear layers on a device: y = x W^T + b, W uploaded once, LibTorch's products in panels of fixed
// rows (device_panels.h), so that a row's bits do not depend on who shares its batch. The bias, or
// bias and activation, is a kernel of ours behind each product.
//
// A library product per panel and not one algorithm of cuBLASLt for every number of rows: the same
// code runs on any device that LibTorch has, the host included, where its tests run; what cuBLAS
// chooses for one number of rows is fixed; and the check at load tells whether sizes agree.
//
// Immutable after load. Used within a Device::Turn.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "models/dense/compute.h"
#include "models/dense/rowwise.h"
#include "models/device/device.h"
#include "models/device/device_memory.h"
#include "models/device/device_panels.h"

namespace longview::models {

// Pointers into the memory of a model's weights.
struct DeviceLinear {
  void* weight = nullptr;  // T [out, in]
  float* bias = nullptr;   // [out]
  int64_t in = 0;
  int64_t out = 0;
  Compute compute = Compute::kFp32;
  DevicePanelSet panels;
};

// Results of the check, by (out, in, compute). One per load.
using DevicePanelRules = std::map<std::tuple<int64_t, int64_t, Compute>, DevicePanelSet>;

// Finds out which panels agree with kDevicePanel: random rows through every size. INTERNAL if equal
// rows of one panel differ in bits: answers would depend on the batch. `name` is for messages.
// Throws DeviceError and what LibTorch throws.
absl::Status ChooseDevicePanels(const Device& device, const std::string& name,
                                DevicePanelRules& rules, DeviceLinear& linear);

// y = x W^T, without the bias. x is readable and y writable kDevicePanelTail rows past `rows`.
void MultiplyRows(const Device& device, const DeviceLinear& linear, const void* x, int64_t rows,
                  void* y);

// MultiplyRows for the few rows of a decode step, whose weight is read once for eight of them: rows
// past `rows` are left alone. The two agree within rounding.
void MultiplyFewRows(const Device& device, const DeviceLinear& linear, const void* x, int64_t rows,
                     void* y);

kernels::cuda::RowActivation DeviceActivation(Activation activation);

// y = activation(y + b).
void AddBias(const Device& device, const DeviceLinear& linear, void* y, int64_t rows,
             Activation activation);

// y = activation(y + b) * (gates + b'), with the biases of `linear` and `gate`.
void GateRows(const Device& device, const DeviceLinear& linear, void* y, const DeviceLinear& gate,
              const void* gates, int64_t rows, Activation activation);

}  // namespace longview::models
