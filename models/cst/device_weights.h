// The weights of a Composite Slice encoder's layers and tables in a device's memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/cst/config.h"
#include "models/cst/weights.h"
#include "models/device/device_weights.h"

namespace longview::models {

// Of places, as CstBias: rows past the end are the last one.
struct DevicePlaceBias {
  float* values = nullptr;  // [entries, 3D]
  int64_t entries = 0;
};

// As CstLayer; what the configuration has not is not there. "T" is the compute type.
struct DeviceCstLayer {
  DeviceLinear token_project, own_slice_project, pool, out, expand, contract;
  DeviceNorm attention_norm, ffn_norm;
  DevicePlaceBias token_bias, slice_bias;
  void* key_rows = nullptr;         // T [L_ext, D]
  void* boundary_keys = nullptr;    // T [boundary rows, D]
  void* boundary_values = nullptr;  // The same.
  float* mixer_in = nullptr;        // [L, h]
  float* mixer_in_bias = nullptr;   // [h]
  float* mixer_out = nullptr;       // [h, L]
  float* mixer_out_bias = nullptr;  // [L]

  const DeviceLinear& slice_project() const {
    return own_slice_project.weight != nullptr ? own_slice_project : token_project;
  }
};

// See encoder/device_parts_family.h. Fill's errors name the tensor; it throws DeviceError and what
// LibTorch throws.
struct DeviceCstWeights {
  float* words = nullptr;      // [V, D_e]
  float* positions = nullptr;  // [N_max, D_e]; position_embedding `conventional`.
  float* types = nullptr;      // [types, D_e]
  DeviceNorm embedding_norm;
  DeviceLinear embedding_project;  // [D, D_e], where D_e is not D.
  DeviceNorm norm;                 // encoder.LayerNorm
  std::vector<DeviceCstLayer> layers;
  std::unique_ptr<DeviceBlock> block;  // Holds all of the above.

  void Assign(const CstConfig& config, DevicePlaces places);
  absl::StatusOr<CstWeights> Fill(const CstConfig& config, const Checkpoint& checkpoint,
                                  const std::string& origin, DeviceFill& fill);
};

// Rows of zero tokens beside a document: one where all are alike, none without a zero boundary.
int64_t BoundaryRows(const CstConfig& config);

}  // namespace longview::models
