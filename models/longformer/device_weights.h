// The weights of a Longformer's layers and tables in a device's memory: one block, uploaded while
// the checkpoint is read. Norms, biases, tables and the folded projections are float, linears of
// the compute type.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/scratch.h"
#include "models/device/device_linear.h"
#include "models/device/device_memory.h"
#include "models/longformer/config.h"
#include "models/longformer/weights.h"

namespace longview::models {

struct DeviceNorm {
  float* gamma = nullptr;
  float* beta = nullptr;
  float eps = 0;

  kernels::cuda::RowNorm view() const { return {gamma, beta, eps}; }
};

// As LongformerLayer.
struct DeviceLongformerLayer {
  DeviceLinear qkv, out, expand, contract, query_global, key_value_global;
  DeviceNorm attention_norm, output_norm;
  float* key_global = nullptr;    // [H, H]
  float* value_global = nullptr;  // [H, H]
};

struct DeviceLongformerWeights {
  LongformerWeights host;  // Heads, for the host, in fp32; no layers.
  float* words = nullptr;  // [V, H]
  float* positions = nullptr;
  float* types = nullptr;
  DeviceNorm embedding_norm;
  std::vector<DeviceLongformerLayer> layers;
  std::unique_ptr<DeviceBlock> block;  // Holds all of the above.
};

// Bytes of that block, from the configuration alone.
size_t DeviceWeightBytes(const LongformerConfig& config, Compute compute);

// Errors name the tensor. Throws DeviceError and what LibTorch throws; within a Device::Turn.
absl::StatusOr<DeviceLongformerWeights> LoadDeviceLongformerWeights(const LongformerConfig& config,
                                                                    const Checkpoint& checkpoint,
                                                                    const std::string& origin,
                                                                    Compute compute,
                                                                    const Device& device);

}  // namespace longview::models
