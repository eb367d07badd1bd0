// The weights of a Luna encoder, by the names of the published code (fairseq-apollo, 2021).
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
#include "models/luna/config.h"

namespace longview::models {

struct LunaLayer {
  // Of tokens: the unpack's query beside the pack's key and value, [3d, d]; tied [2d, d].
  DenseLayer project;
  DenseLayer pack_query;  // pq_proj, of the rows of P.
  DenseLayer unpack;      // c_proj, or k_proj and v_proj: of the packed rows.
  DenseLayer out;         // out_proj
  Norm attention_norm;    // self_attn_layer_norm
  Norm projected_norm;    // self_atten_proj_layer_norm
  DenseLayer expand, contract;
  Norm output_norm;  // final_layer_norm
};

struct LunaWeights {
  const TensorView* words = nullptr;      // [V, d], in the checkpoint.
  const TensorView* positions = nullptr;  // [max_positions + pad + 1, d] if learned.
  std::vector<float> sinusoids;           // The same shape if sinusoidal.
  Norm embedding_norm;                    // Empty without.
  std::vector<float> projected;           // [l, d] P as it enters the first layer.
  std::vector<LunaLayer> layers;          // As stored: one if tied.
  Norm final_norm, final_projected_norm;  // Pre-norm models.

  std::vector<DenseLayer> hidden;                         // LRA: classifier.i
  std::optional<DenseLayer> head_in;                      // kProjectedMax: in_proj.
  std::optional<DenseLayer> query, key, value, attended;  // kProjectedHead.
  std::optional<DenseLayer> head_dense;                   // Luna-BERT heads: dense.
  Norm head_norm;                                         // lm_head.layer_norm, or layernorm.
  std::optional<DenseLayer> head_out;

  PanelSizes sizes;  // Panels that every encoder linear allows.
  double parameters = 0;
  double memory_bytes = 0;

  const LunaLayer& layer(int i) const { return layers[layers.size() == 1 ? 0 : i]; }
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `compute` names and
// shapes are checked, nothing is read.
absl::StatusOr<LunaWeights> LoadLunaWeights(const LunaConfig& config, const Checkpoint& checkpoint,
                                            const std::string& origin,
                                            std::optional<Compute> compute);

// The host's share of a model whose layers are elsewhere: embeddings, P and heads, in fp32. The
// linears of the layers go to `sink` in the order of LunaLayer, then their norms.
absl::StatusOr<LunaWeights> LoadLunaHost(const LunaConfig& config, const Checkpoint& checkpoint,
                                         const std::string& origin, LayerSink& sink);

}  // namespace longview::models
