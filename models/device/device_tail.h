// The rest of a transformer layer behind attention, on a device: layers/block_tail.h over all rows
// of a batch at once, with the norm that ends the model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/dense/rowwise.h"
#include "models/device/device_linear.h"
#include "models/device/device_weights.h"
#include "models/layers/block_tail.h"

namespace longview::models {

struct DeviceTail {
  const DeviceLinear* out = nullptr;  // Null: z itself is added.
  const DeviceNorm* after_attention = nullptr;
  const DeviceLinear* expand = nullptr;
  const DeviceLinear* contract = nullptr;
  // Pre-norm: of what reads `input` next; null: nobody does.
  const DeviceNorm* after_layer = nullptr;
  const DeviceNorm* last = nullptr;  // x = LN(x) behind all, in fp32; null: none.
  Activation activation = Activation::kGelu;
  NormPlace norms = NormPlace::kPost;
  const DeviceLinear* gate = nullptr;  // Null: none.
};

// On the device. T is the compute type; what linears read and write has kDevicePanelTail rows more.
struct DeviceTailRows {
  float* x = nullptr;          // [rows, width] residual stream.
  std::byte* input = nullptr;  // T [rows, width]; post-norm fp32: x itself.
  std::byte* z = nullptr;      // T [rows, width] attention's output.
  std::byte* wide = nullptr;   // T [rows, expanded] scratch.
  std::byte* added = nullptr;  // T [rows, width] scratch.
  int64_t rows = 0;
  std::byte* gates = nullptr;  // T [rows, expanded] scratch, where there is a gate.
  bool few = false;            // Rows of a decode step: MultiplyFewRows.
};

// Work for the device's stream. Throws DeviceError and what LibTorch throws; within a Device::Turn.
void RunDeviceTail(const Device& device, const DeviceTail& tail, const DeviceTailRows& rows);

}  // namespace longview::models
