// The weights of a Transformer-LS text encoder, by the names of the published trainer's state dict.
// Embedding tables stay in the mapped file; everything else is copied or packed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/layers/layer_sink.h"
#include "models/layers/weight_loader.h"
#include "models/transformer_ls_text/config.h"

namespace longview::models {

struct LsTextLayer {
  Norm attention_norm;  // norm1
  // Query, key, value and the scores of the dynamic projection (dconv_fc) side by side:
  // [3d + h r, d].
  DenseLayer project;
  Norm token_norm;     // dual_ln_l: keys and values of tokens.
  Norm landmark_norm;  // dual_ln_s: projected keys and values, the class vector's among them.
  DenseLayer out;      // W_o
  Norm mlp_norm;       // norm2
  DenseLayer expand, contract;
};

struct LsTextWeights {
  const TensorView* words = nullptr;      // [V, d], in the checkpoint.
  const TensorView* positions = nullptr;  // [max_seq_len, d]
  std::vector<float> class_vector;        // [d]; modes last_layer and all_layers.
  std::vector<LsTextLayer> layers;        // As stored: one if tied.
  Norm norm;                              // model.norm
  std::optional<DenseLayer> head_hidden, head_out;

  PanelSizes sizes;  // Panels that every encoder linear allows.
  double parameters = 0;
  double memory_bytes = 0;

  const LsTextLayer& layer(int i) const { return layers[layers.size() == 1 ? 0 : i]; }
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `compute` names and
// shapes are checked, nothing is read.
absl::StatusOr<LsTextWeights> LoadLsTextWeights(const LsTextConfig& config,
                                                const Checkpoint& checkpoint,
                                                const std::string& origin,
                                                std::optional<Compute> compute);

// The host's share of a model whose layers are elsewhere: embeddings and heads, in fp32. The
// linears and norms of the layers go to `sink` in the order of LsTextLayer.
absl::StatusOr<LsTextWeights> LoadLsTextHost(const LsTextConfig& config,
                                             const Checkpoint& checkpoint,
                                             const std::string& origin, LayerSink& sink);

}  // namespace longview::models
