// The weights of a Luna language model, by the names of the published translation decoder, where it
// runs. Tables of the host are kept (layers/kept_table.h); everything else is copied or packed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/weight_format.h"
#include "models/luna_decoder/config.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

// Attention across, and what a layer makes of a document for it (luna/pass.h's pack and unpack,
// with the encoder's last states as tokens).
struct LunaCross {
  Weight rows;        // self_attn.pq_proj: of the rows P.
  Weight pack_query;  // encoder_attn.pq_proj: of the rows P.
  Weight pack;        // pc_proj, or pk_proj and pv_proj side by side: of the document.
  Weight unpack;      // c_proj, or k_proj and v_proj: of the packed rows.
  Weight query;       // q_proj: of tokens.
  Weight out;         // out_proj
  NormWeight norm, projected_norm;  // encoder_attn_layer_norm, encoder_atten_proj_layer_norm
};

struct LunaDecoderLayer {
  // Projections of tokens, side by side: q_proj, pc_proj, then c_proj, or k_proj and v_proj: [parts
  // d, d].
  Weight project;
  Weight out;                 // out_proj
  NormWeight attention_norm;  // self_attn_layer_norm
  Weight expand, contract;
  NormWeight output_norm;  // final_layer_norm
  // Language models: pq_proj of the layer's rows P, as kernels::AppendOuter reads them.
  Table packed;
  std::optional<LunaCross> cross;  // Translation.
};

struct LunaDecoderWeights {
  Table words;                // [V, d]
  Table positions;            // [max_positions + pad + 1, d]; none without.
  NormWeight embedding_norm;  // None without.
  std::vector<LunaDecoderLayer> layers;
  NormWeight final_norm;  // Pre-norm models.
  // output_projection, without bias; with project_out_dim the product of the two.
  Weight logits;

  double parameters = 0;
  double memory_bytes = 0;
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory; see
// WeightPlacer.
absl::StatusOr<LunaDecoderWeights> LoadLunaDecoderWeights(const LunaDecoderConfig& config,
                                                          const Checkpoint& checkpoint,
                                                          const std::string& origin,
                                                          std::optional<WeightFormat> format,
                                                          DeviceStore* store = nullptr);

}  // namespace longview::models
