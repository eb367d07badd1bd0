// The weights of a Vision Longformer's stages in a device's memory: linears of the compute type,
// all else float.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device_weights.h"
#include "models/vil/config.h"
#include "models/vil/weights.h"

namespace longview::models {

// As VilBlock, but that scores of landmarks are the last outputs of qkv. Null and unset is what the
// stage's attention does not have.
struct DeviceVilBlock {
  DeviceNorm attention_norm, mlp_norm;
  DeviceNorm token_norm, landmark_norm;
  std::optional<DeviceLinear> qkv, out, global_query, global_key_value, global_out;
  std::optional<DeviceLinear> reduce, key_value, expand, contract;
  float* local_bias = nullptr;   // [heads, entries]
  float* mixed_bias = nullptr;   // [heads, 2 g]
  float* global_bias = nullptr;  // [heads, g * g]
  float* project_keys = nullptr;
  float* project_values = nullptr;  // project_keys itself where they share.
  float* features = nullptr;
};

struct DeviceVilStageWeights {
  DeviceLinear patch;
  DeviceNorm patch_norm;        // gamma null without norm_embed.
  float* class_rows = nullptr;  // [g, d], with their positions.
  std::vector<DeviceVilBlock> blocks;
};

struct DeviceVilWeights {
  std::vector<DeviceVilStageWeights> stages;
  DeviceNorm norm;                     // Of a backbone: null.
  void* zeros = nullptr;               // T [widest d], all zero: keys and values of padding.
  std::unique_ptr<DeviceBlock> block;  // Holds all of the above.
};

// What a load makes of a checkpoint.
struct VilOnDevice {
  VilWeights host;  // Without linears but the head, in fp32.
  DeviceVilWeights device;
};

// Bytes of the device's block, from the configuration alone.
size_t DeviceVilWeightBytes(const VilConfig& config, Compute compute);

// Errors as LoadVilWeights. Throws DeviceError and what LibTorch throws; within a Device::Turn.
absl::StatusOr<VilOnDevice> LoadDeviceVilWeights(const VilConfig& config,
                                                 const BackbonePlace* place,
                                                 const Checkpoint& checkpoint,
                                                 const std::string& origin, Compute compute,
                                                 const Device& device);

}  // namespace longview::models
