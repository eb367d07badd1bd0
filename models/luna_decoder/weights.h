// The weights of a Luna language model, by the names of the published translation decoder. The
// embedding table stays in the mapped file; everything else is copied or packed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/layers/weight_loader.h"
#include "models/luna_decoder/config.h"

namespace longview::models {

// Attention across, and what a layer makes of a document for it (luna/encoder.h's pack and unpack,
// with the encoder's last states as tokens).
struct LunaCross {
  DenseLayer rows;            // self_attn.pq_proj: of the rows P.
  DenseLayer pack_query;      // encoder_attn.pq_proj: of the rows P.
  DenseLayer pack;            // pc_proj, or pk_proj and pv_proj side by side: of the document.
  DenseLayer unpack;          // c_proj, or k_proj and v_proj: of the packed rows.
  DenseLayer query;           // q_proj: of tokens.
  DenseLayer out;             // out_proj
  Norm norm, projected_norm;  // encoder_attn_layer_norm, encoder_atten_proj_layer_norm
};

struct LunaDecoderLayer {
  // Of tokens, side by side: q_proj, pc_proj, then c_proj, or k_proj and v_proj: [parts d, d].
  DenseLayer project;
  DenseLayer out;       // out_proj
  Norm attention_norm;  // self_attn_layer_norm
  DenseLayer expand, contract;
  Norm output_norm;  // final_layer_norm
  // Language models: pq_proj of the layer's rows P, as kernels::AppendOuter reads them.
  std::vector<float> packed;
  std::optional<LunaCross> cross;  // Translation.
};

struct LunaDecoderWeights {
  const TensorView* words = nullptr;      // [V, d], in the checkpoint.
  const TensorView* positions = nullptr;  // [max_positions + pad + 1, d] if learned.
  std::vector<float> sinusoids;           // The same shape if sinusoidal.
  Norm embedding_norm;                    // Empty without.
  std::vector<LunaDecoderLayer> layers;
  Norm final_norm;  // Pre-norm models.
  // output_projection, without bias; with project_out_dim the product of the two.
  std::optional<DenseLayer> logits;

  PanelSizes sizes;  // Panels that every linear of a layer allows.
  double parameters = 0;
  double memory_bytes = 0;
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `compute` names and
// shapes are checked, nothing is read.
absl::StatusOr<LunaDecoderWeights> LoadLunaDecoderWeights(const LunaDecoderConfig& config,
                                                          const Checkpoint& checkpoint,
                                                          const std::string& origin,
                                                          std::optional<Compute> compute);

}  // namespace longview::models
