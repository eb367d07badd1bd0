// The weights of a Vision Longformer or a ViL-LS, packed for this machine, named as in the original
// repositories.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/dense/weight_format.h"
#include "models/ops/weight_placer.h"
#include "models/vil/config.h"
#include "models/vision/backbone.h"

namespace longview::models {

// Whether the model has it.
inline bool Has(const Weight& weight) { return weight.out > 0; }

// All values of a table on the host.
inline std::span<const float> AllOf(const Table& table) {
  return {table.values(), static_cast<size_t>(table.rows() * table.width())};
}

// Relative position biases, heads outermost, natural units.
struct VilBias {
  Table local;   // [heads, entries]; entries by query minus key.
  Table mixed;   // [heads, 2 g]: global to local, then local to global.
  Table global;  // [heads, g * g]
};

// Weights that a stage's kind of attention lacks are empty.
struct VilBlock {
  NormWeight attention_norm;
  // [3d, d]; spatial reduction: the query alone, [d, d]. On a device scores of landmarks are its
  // last outputs.
  Weight qkv;
  Weight landmarks;  // Long-short attention, on the host: the projection's scores, [h r, d].
  Weight out;
  // Global tokens' own projections, where they do not share.
  Weight global_query, global_key_value, global_out;
  VilBias bias;
  Table project_keys, project_values;  // Linformer: [N, f]; values empty if shared.
  // Spatial reduction: a convolution as [d, f * f * d], columns (row, column, channel), no bias;
  // and [2d, d] for what it leaves.
  Weight reduce, key_value;
  Table features;                        // Performer: [f, d / heads].
  NormWeight token_norm, landmark_norm;  // Long-short: of keys and values, all heads together.
  NormWeight mlp_norm;
  Weight expand;    // [hidden, d]
  Weight contract;  // [d, hidden]
};

struct VilStageWeights {
  // [d, p * p * c]: columns are (row, column, channel) of a patch; in the first stage (channel,
  // row, column), as pixels come.
  Weight patch;
  NormWeight patch_norm;                // Empty without norm_embed.
  Table class_rows;                     // [g, d], with their positions.
  std::vector<float> row_positions;     // [map rows, d / 2]
  std::vector<float> column_positions;  // [map columns, d / 2]
  std::vector<VilBlock> blocks;
};

// The stages are where the model runs; the head is on the host.
struct VilWeights {
  std::vector<VilStageWeights> stages;
  NormWeight norm;  // Empty in a backbone.
  TypedRows zeros;  // [1, widest d] keys and values of padding.
  std::optional<DenseLayer> head;
  double parameters = 0;
  double memory_bytes = 0;
};

// `place`: where a backbone's tensors lie (config.backbone), else null. REQUIRES: `checkpoint`
// outlives the call. Errors name the tensor. Without `format` names and shapes are checked, and
// the weights have sizes alone. With a store the stages are in a device's memory, see WeightPlacer;
// `format` is the head's type then.
absl::StatusOr<VilWeights> LoadVilWeights(const VilConfig& config, const BackbonePlace* place,
                                          const Checkpoint& checkpoint, const std::string& origin,
                                          std::optional<WeightFormat> format, DeviceStore* store);

}  // namespace longview::models
