// The weights of a Luna encoder, by the names of the published code (fairseq-apollo, 2021).
// Embedding tables are read from pages of the process's own; everything else is copied or packed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/dense/weight_format.h"
#include "models/luna/config.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

struct LunaLayer {
  // Tokens: the unpack's query beside the pack's key and value, [3d, d]; tied [2d, d].
  Weight project;
  Weight pack_query;          // pq_proj, applied to the rows of P.
  Weight unpack;              // c_proj, or k_proj and v_proj: applied to the packed rows.
  Weight out;                 // out_proj
  NormWeight attention_norm;  // self_attn_layer_norm
  NormWeight projected_norm;  // self_atten_proj_layer_norm
  Weight expand, contract;
  NormWeight output_norm;  // final_layer_norm
};

// The layers are where the model runs; heads are on the host.
struct LunaWeights {
  Table words;                                  // [V, d]
  Table positions;                              // [max_positions + pad + 1, d]; none without.
  NormWeight embedding_norm;                    // None without.
  Table projected;                              // [l, d] P as it enters the first layer.
  std::vector<LunaLayer> layers;                // Stored layers: one if tied.
  NormWeight final_norm, final_projected_norm;  // Pre-norm models.

  std::vector<DenseLayer> hidden;                         // LRA: classifier.i
  std::optional<DenseLayer> head_in;                      // kProjectedMax: in_proj.
  std::optional<DenseLayer> query, key, value, attended;  // kProjectedHead.
  std::optional<DenseLayer> head_dense;                   // Luna-BERT heads: dense.
  Norm head_norm;                                         // lm_head.layer_norm, or layernorm.
  std::optional<DenseLayer> head_out;

  double parameters = 0;
  double memory_bytes = 0;

  const LunaLayer& layer(int i) const { return layers[layers.size() == 1 ? 0 : i]; }
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory, for the layers;
// see WeightPlacer. Then `format` is the heads' type.
absl::StatusOr<LunaWeights> LoadLunaWeights(const LunaConfig& config, const Checkpoint& checkpoint,
                                            const std::string& origin,
                                            std::optional<WeightFormat> format,
                                            DeviceStore* store = nullptr);

}  // namespace longview::models
