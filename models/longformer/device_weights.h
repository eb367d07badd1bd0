// The weights of a Longformer's layers and tables in a device's memory. The folded projections are
// float.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/device/device_weights.h"
#include "models/longformer/config.h"
#include "models/longformer/weights.h"

namespace longview::models {

// As LongformerLayer.
struct DeviceLongformerLayer {
  DeviceLinear qkv, out, expand, contract, query_global, key_value_global;
  DeviceNorm attention_norm, output_norm;
  float* key_global = nullptr;    // [H, H]
  float* value_global = nullptr;  // [H, H]
};

struct DeviceLongformerWeights {
  float* words = nullptr;  // [V, H]
  float* positions = nullptr;
  float* types = nullptr;
  DeviceNorm embedding_norm;
  std::vector<DeviceLongformerLayer> layers;
  std::unique_ptr<DeviceBlock> block;  // Holds all of the above.
};

struct LongformerOnDevice {
  LongformerWeights host;  // Heads, for the host, in fp32; no layers.
  DeviceLongformerWeights device;
};

// Bytes of that block, from the configuration alone.
size_t DeviceWeightBytes(const LongformerConfig& config, Compute compute);

// Errors name the tensor. Throws DeviceError and what LibTorch throws; within a Device::Turn.
absl::StatusOr<LongformerOnDevice> LoadDeviceLongformerWeights(const LongformerConfig& config,
                                                               const Checkpoint& checkpoint,
                                                               const std::string& origin,
                                                               Compute compute,
                                                               const Device& device);

}  // namespace longview::models
