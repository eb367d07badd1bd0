// The weights of a Luna encoder's layers and tables in a device's memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device_weights.h"
#include "models/luna/config.h"
#include "models/luna/weights.h"

namespace longview::models {

// As LunaLayer.
struct DeviceLunaLayer {
  DeviceLinear project, pack_query, unpack, out, expand, contract;
  DeviceNorm attention_norm, projected_norm, output_norm;
};

// See encoder/device_parts_family.h. Fill's errors name the tensor; it throws DeviceError and what
// LibTorch throws.
struct DeviceLunaWeights {
  float* words = nullptr;      // [V, d]
  float* positions = nullptr;  // [max_positions + pad + 1, d], learned or sinusoids.
  float* projected = nullptr;  // [l, d]
  DeviceNorm embedding_norm, final_norm, final_projected_norm;
  std::vector<DeviceLunaLayer> layers;  // As stored: one if tied.
  std::unique_ptr<DeviceBlock> block;   // Holds all of the above.

  void Assign(const LunaConfig& config, DevicePlaces places);
  absl::StatusOr<LunaWeights> Fill(const LunaConfig& config, const Checkpoint& checkpoint,
                                   const std::string& origin, DeviceFill& fill);

  const DeviceLunaLayer& layer(int i) const { return layers[layers.size() == 1 ? 0 : i]; }
};

}  // namespace longview::models
