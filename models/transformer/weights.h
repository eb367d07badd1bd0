// The weights of an encoder of plain transformer layers: layers where the model runs, heads on the
// host. Immutable after load.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/dense/layer.h"
#include "models/ops/weight.h"
#include "models/transformer/config.h"

namespace longview::models {

struct TransformerLayer {
  NormWeight attention_norm;  // Pre-norm: before the projections; the first layer may lack it.
  Weight project;             // Queries, keys and values side by side: [3H, H].
  Weight out;
  NormWeight middle_norm;  // Between attention and the MLP.
  Weight expand;
  std::optional<Weight> gate;
  Weight contract;
  NormWeight output_norm;  // Post-norm.
};

struct TransformerWeights {
  Table words;      // [V, H]
  Table positions;  // [positions, H], where there are any.
  Table types;      // [types, H], where there are any.
  NormWeight embedding_norm;
  std::vector<TransformerLayer> layers;
  std::vector<Table> angles;  // [max_tokens, head_dim], by the index of config.rotary.
  NormWeight final_norm;      // Pre-norm.
  // act(dense(row)), then the norm where there is one, then out.
  std::optional<DenseLayer> head_dense, head_out;
  std::optional<Norm> head_norm;
  std::optional<DenseLayer> pooler;

  std::vector<std::string> notes;  // Tensors that were left aside.
  double parameters = 0;
  double memory_bytes = 0;
};

}  // namespace longview::models
