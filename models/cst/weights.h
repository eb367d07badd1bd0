// The weights of a Composite Slice Transformer, by the names of our checkpoint format (those of
// HuggingFace's BERT encoders under `cst.`, the global scale's with Longformer's suffix `_global`).
// Embedding tables stay in the mapped file; everything else is copied or packed.
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
#include "models/cst/positions.h"
#include "models/dense/layer.h"
#include "models/layers/layer_sink.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

// W_2 gelu(W_1 x + b_1) + b_2 over the places of a slice, weights as kernels::PlaceMix wants them.
struct CstMixer {
  std::vector<float> in_weights, in_bias;    // [L, h], [h]
  std::vector<float> out_weights, out_bias;  // [h, L], [L]
};

// What positions add to a layer, multiplied out.
struct CstTables {
  CstBias token_bias, slice_bias;
  std::vector<float> key_rows;
  std::vector<float> boundary_keys, boundary_values;
};

struct CstLayer {
  // Query, key and value side by side, [3D, D], of tokens (unset with the `mlp` mixer) and of slice
  // embeddings (unset where they share the tokens').
  std::optional<DenseLayer> token_project, own_slice_project;
  CstBias token_bias, slice_bias;
  std::vector<float> key_rows;  // T_k [L_ext, D]; with relative_keys().
  // Zero tokens beside the sequence, with zero_boundary and e > 0: keys and values of the places
  // to the left, then of those to the right, [2e, D]; one row each where all are alike.
  std::vector<float> boundary_keys, boundary_values;
  std::optional<CstMixer> mixer;
  std::optional<DenseLayer> pool;  // slice_pooling `linear`: [D, L D], places in order.
  std::optional<DenseLayer> out;   // attention.output.dense
  Norm attention_norm;             // attention.output.LayerNorm
  DenseLayer expand, contract;
  Norm ffn_norm;  // output.LayerNorm

  const DenseLayer& slice_project() const {
    return own_slice_project ? *own_slice_project : *token_project;
  }
};

struct CstWeights {
  const TensorView* words = nullptr;      // [V, D_e], in the checkpoint.
  const TensorView* positions = nullptr;  // [N_max, D_e]; position_embedding `conventional`.
  std::vector<float> types;               // [types, D_e]
  std::optional<Norm> embedding_norm;
  std::optional<DenseLayer> embedding_project;  // [D, D_e]
  std::vector<CstLayer> layers;
  std::optional<Norm> norm;  // encoder.LayerNorm

  std::optional<DenseLayer> pooler;
  // classifier.dense; cls.predictions.transform.dense
  std::optional<DenseLayer> head_dense;
  std::optional<Norm> head_norm;  // cls.predictions.transform.LayerNorm
  // classifier(.out_proj), the vocabulary's decoder; adaptive softmax: the vocabulary's rows, then
  // the clusters' [V + k, D].
  std::optional<DenseLayer> head_out;

  PanelSizes sizes;  // Panels that every linear of a layer allows.
  double parameters = 0;
  double memory_bytes = 0;
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `compute` names and
// shapes are checked, nothing is read.
absl::StatusOr<CstWeights> LoadCstWeights(const CstConfig& config, const Checkpoint& checkpoint,
                                          const std::string& origin,
                                          std::optional<Compute> compute);

// Takes the layers of a model that computes elsewhere.
class CstLayerSink : public LayerSink {
 public:
  // After a layer's linears and norms. `name` is the layer's, for messages; `mixer` is null without
  // the `mlp` mixer. The status becomes the loader's.
  virtual absl::Status Tables(const std::string& name, const CstTables& tables,
                              const CstMixer* mixer) = 0;
};

// The host's share of such a model: embeddings and heads, in fp32. `sink` gets embedding_project,
// where there is one, and of every layer the linears and norms that the configuration has, in the
// order of CstLayer.
absl::StatusOr<CstWeights> LoadCstHost(const CstConfig& config, const Checkpoint& checkpoint,
                                       const std::string& origin, CstLayerSink& sink);

}  // namespace longview::models
