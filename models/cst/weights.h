// The weights of a Composite Slice Transformer, by the names of our checkpoint format (those of
// HuggingFace's BERT encoders under `cst.`, the global scale's with Longformer's suffix `_global`).
// Embedding tables are kept (layers/kept_table.h); everything else is copied or packed.
//
// Positions never meet a token: (x + P) W = x W + P W, so what they add to queries and keys is
// multiplied out at load and lies in tables of biases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/cst/config.h"
#include "models/cst/mix_slices.h"
#include "models/dense/layer.h"
#include "models/dense/weight_format.h"
#include "models/ops/backend.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

struct CstLayer {
  // Query, key and value side by side, [3D, D], of tokens (none with the `mlp` mixer) and of slice
  // embeddings (none where they share the tokens').
  Weight token_project, own_slice_project;
  // Added to them: [places of a slice, 3D] and [slices, 3D], or one row for all.
  Table token_bias, slice_bias;
  TypedRows key_rows;  // T_k [L_ext, D]; with relative_keys().
  // Zero tokens beside the sequence, with zero_boundary and e > 0: keys and values of the places
  // to the left, then of those to the right, [2e, D]; one row each where all are alike.
  TypedRows boundary_keys, boundary_values;
  PlaceMixer mixer;           // Set for the `mlp` mixer.
  Weight pool;                // slice_pooling `linear`: [D, L D], places in order.
  Weight out;                 // attention.output.dense; none without.
  NormWeight attention_norm;  // attention.output.LayerNorm
  Weight expand, contract;
  NormWeight ffn_norm;  // output.LayerNorm

  const Weight& slice_project() const {
    return own_slice_project.out > 0 ? own_slice_project : token_project;
  }
};

// The layers are where the model runs; heads are on the host.
struct CstWeights {
  Table words;                // [V, D_e]
  Table positions;            // [N_max, D_e]; position_embedding `conventional`.
  Table types;                // [types, D_e]
  NormWeight embedding_norm;  // None without.
  Weight embedding_project;   // [D, D_e], where D_e is not D.
  std::vector<CstLayer> layers;
  NormWeight norm;  // encoder.LayerNorm; none without.

  std::optional<DenseLayer> pooler;
  // classifier.dense; cls.predictions.transform.dense
  std::optional<DenseLayer> head_dense;
  std::optional<Norm> head_norm;       // cls.predictions.transform.LayerNorm
  std::optional<DenseLayer> head_out;  // classifier(.out_proj), the vocabulary's decoder.
  // Language models: the vocabulary's rows, then those of an adaptive softmax's tails [V + k, D];
  // where the layers are.
  Weight logits;

  double parameters = 0;
  double memory_bytes = 0;
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory, for the layers;
// see WeightPlacer. Then `format` is the heads' type.
absl::StatusOr<CstWeights> LoadCstWeights(const CstConfig& config, const Checkpoint& checkpoint,
                                          const std::string& origin,
                                          std::optional<WeightFormat> format,
                                          DeviceStore* store = nullptr);

}  // namespace longview::models
