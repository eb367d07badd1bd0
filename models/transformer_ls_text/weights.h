// The weights of a Transformer-LS text encoder, by the names of the published trainer's state dict.
// Embedding tables are read from pages of the process's own; everything else is copied or packed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/dense/weight_format.h"
#include "models/ops/weight_placer.h"
#include "models/transformer_ls_text/config.h"

namespace longview::models {

struct LsTextLayer {
  NormWeight attention_norm;  // norm1
  // Query, key, value and the scores of the dynamic projection (dconv_fc) side by side:
  // [3d + h r, d].
  Weight project;
  NormWeight token_norm;     // dual_ln_l: keys and values of tokens.
  NormWeight landmark_norm;  // dual_ln_s: projected keys and values, the class vector's among them.
  Weight out;                // W_o
  NormWeight mlp_norm;       // norm2
  Weight expand, contract;
};

// The layers are where the model runs; heads are on the host.
struct LsTextWeights {
  Table words;                      // [V, d]
  Table positions;                  // [max_seq_len, d]
  Table class_vector;               // [1, d]; modes last_layer and all_layers.
  std::vector<LsTextLayer> layers;  // Stored layers: one if tied.
  NormWeight norm;                  // model.norm
  std::optional<DenseLayer> head_hidden, head_out;

  double parameters = 0;
  double memory_bytes = 0;

  const LsTextLayer& layer(int i) const { return layers[layers.size() == 1 ? 0 : i]; }
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory, for the layers;
// see WeightPlacer. Then `format` is the heads' type.
absl::StatusOr<LsTextWeights> LoadLsTextWeights(const LsTextConfig& config,
                                                const Checkpoint& checkpoint,
                                                const std::string& origin,
                                                std::optional<WeightFormat> format,
                                                DeviceStore* store = nullptr);

}  // namespace longview::models
