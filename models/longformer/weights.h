// The weights of a Longformer, packed for this machine. Embedding tables are read row by row from
// pages of the process's own (kept_table.h); everything else is copied, its file pages given back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/dense/weight_format.h"
#include "models/layers/compute_context.h"
#include "models/longformer/config.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

struct LongformerLayer {
  Weight qkv;  // Local query, key, value side by side: [3H, H].
  Weight out;  // attention.output.dense
  NormWeight attention_norm;
  Weight expand;    // intermediate.dense
  Weight contract;  // output.dense
  NormWeight output_norm;
  Weight query_global;      // [H, H]
  Weight key_value_global;  // [2H, H]
  // Copies in fp32, [H, H] and unpacked, for folded global rows.
  Matrix key_global, value_global;
};

// The layers are where the model runs; heads are on the host.
struct LongformerWeights {
  Table words;      // [V, H]
  Table positions;  // [positions, H]
  Table types;      // [types, H]; none: nothing is added.
  NormWeight embedding_norm;
  std::vector<LongformerLayer> layers;

  // By head: sequence classification has head_dense and head_out; token classification, question
  // answering and multiple choice head_out; masked LM head_dense, head_norm and head_out.
  std::optional<DenseLayer> head_dense;
  std::optional<DenseLayer> head_out;
  Norm head_norm;
  std::optional<DenseLayer> pooler;  // LongformerModel where stored; multiple choice.

  std::vector<std::string> notes;  // Tensors that were left aside.
  double parameters = 0;
  double memory_bytes = 0;  // Packs, copies and tables.
};

using LongformerContext = ModelContext<LongformerConfig, LongformerWeights>;

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory, for the layers;
// see WeightPlacer. Then `format` is the heads' type.
absl::StatusOr<LongformerWeights> LoadLongformerWeights(const LongformerConfig& config,
                                                        const Checkpoint& checkpoint,
                                                        const std::string& origin,
                                                        std::optional<WeightFormat> format,
                                                        DeviceStore* store = nullptr);

}  // namespace longview::models
