// The weights of a Transformer-LS text encoder's layers and tables in a device's memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device_weights.h"
#include "models/transformer_ls_text/config.h"
#include "models/transformer_ls_text/weights.h"

namespace longview::models {

// As LsTextLayer.
struct DeviceLsTextLayer {
  DeviceLinear project, out, expand, contract;
  DeviceNorm attention_norm, token_norm, landmark_norm, mlp_norm;
};

// See encoder/device_parts_family.h. Fill's errors name the tensor; it throws DeviceError and what
// LibTorch throws.
struct DeviceLsTextWeights {
  float* words = nullptr;                 // [V, d]
  float* positions = nullptr;             // [max_seq_len, d]
  float* class_vector = nullptr;          // [d]; modes last_layer and all_layers.
  DeviceNorm norm;                        // model.norm
  std::vector<DeviceLsTextLayer> layers;  // As stored: one if tied.
  std::unique_ptr<DeviceBlock> block;     // Holds all of the above.

  void Assign(const LsTextConfig& config, DevicePlaces places);
  absl::StatusOr<LsTextWeights> Fill(const LsTextConfig& config, const Checkpoint& checkpoint,
                                     const std::string& origin, DeviceFill& fill);

  const DeviceLsTextLayer& layer(int i) const { return layers[layers.size() == 1 ? 0 : i]; }
};

}  // namespace longview::models
