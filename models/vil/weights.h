// The weights of a Vision Longformer or a ViL-LS, packed for this machine, named as in the original
// repositories.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/layers/weight_loader.h"
#include "models/vil/config.h"
#include "models/vision/backbone.h"

namespace longview::models {

// Relative position biases, heads outermost, natural units.
struct VilBias {
  std::vector<float> local;   // [heads, entries]; entries by query minus key.
  std::vector<float> mixed;   // [heads, 2 g]: global to local, then local to global.
  std::vector<float> global;  // [heads, g * g]
};

struct VilBlock {
  Norm attention_norm;
  std::optional<DenseLayer> qkv;        // [3d, d]; spatial reduction: the query alone, [d, d].
  std::optional<DenseLayer> landmarks;  // Long-short attention: the projection's scores, [h r, d].
  std::optional<DenseLayer> out;
  // Global tokens' own projections, where they do not share.
  std::optional<DenseLayer> global_query, global_key_value, global_out;
  VilBias bias;
  std::vector<float> project_keys, project_values;  // Linformer: [N, f]; values empty if shared.
  // Spatial reduction: a convolution as [d, f * f * d], columns (row, column, channel), no bias;
  // and [2d, d] for what it leaves.
  std::optional<DenseLayer> reduce, key_value;
  std::vector<float> features;     // Performer: [f, d / heads].
  Norm token_norm, landmark_norm;  // Long-short attention: of keys and values, all heads together.
  Norm mlp_norm;
  std::optional<DenseLayer> expand;    // [hidden, d]
  std::optional<DenseLayer> contract;  // [d, hidden]
};

struct VilStageWeights {
  // [d, p * p * c]: columns are (row, column, channel) of a patch; in the first stage (channel,
  // row, column), as pixels come.
  std::optional<DenseLayer> patch;
  Norm patch_norm;                      // Empty without norm_embed.
  std::vector<float> class_tokens;      // [g, d]
  std::vector<float> class_positions;   // [g, d], with absolute positions.
  std::vector<float> row_positions;     // [map rows, d / 2]
  std::vector<float> column_positions;  // [map columns, d / 2]
  std::vector<VilBlock> blocks;
  PanelSizes sizes;  // Panels that every linear of the blocks allows.
};

struct VilWeights {
  std::vector<VilStageWeights> stages;
  Norm norm;
  std::optional<DenseLayer> head;
  double parameters = 0;
  double memory_bytes = 0;
};

// `place`: where a backbone's tensors lie (config.backbone), else null. REQUIRES: `checkpoint`
// outlives the call. Errors name the tensor. Without `compute` names and shapes are checked,
// nothing is read.
absl::StatusOr<VilWeights> LoadVilWeights(const VilConfig& config, const BackbonePlace* place,
                                          const Checkpoint& checkpoint, const std::string& origin,
                                          std::optional<Compute> compute);

// The same in fp32 with the linears of all stages going to `taker`, and none in what is returned
// but the head. Of a stage they come in this order: patch, and per block, as far as it has them,
// qkv, landmarks, out, global_query, global_key_value, global_out, reduce, key_value, expand,
// contract.
absl::StatusOr<VilWeights> LoadVilHost(const VilConfig& config, const BackbonePlace* place,
                                       const Checkpoint& checkpoint, const std::string& origin,
                                       WeightLoader::Taker taker);

}  // namespace longview::models
