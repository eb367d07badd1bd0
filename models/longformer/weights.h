// The weights of a Longformer, packed for this machine. Embedding tables stay in the mapped file
// and are read row by row; everything else is copied and its file pages given back.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/layers/weight_loader.h"
#include "models/longformer/config.h"

namespace longview::models {

struct LongformerLayer {
  DenseLayer qkv;  // Local query, key, value side by side: [3H, H].
  DenseLayer out;  // attention.output.dense
  Norm attention_norm;
  DenseLayer expand;    // intermediate.dense
  DenseLayer contract;  // output.dense
  Norm output_norm;
  DenseLayer query_global;      // [H, H]
  DenseLayer key_value_global;  // [2H, H]
  // Unpacked [H, H], for folded global rows: in the checkpoint's pages where they are fp32.
  FloatMatrix key_global, value_global;
};

struct LongformerWeights {
  const TensorView* words = nullptr;      // [V, H], in the checkpoint.
  const TensorView* positions = nullptr;  // [positions, H]
  std::vector<float> types;               // [types, H]
  Norm embedding_norm;
  std::vector<LongformerLayer> layers;

  // By head: sequence classification has head_dense and head_out; token classification, question
  // answering and multiple choice head_out; masked LM head_dense, head_norm and head_out.
  std::optional<DenseLayer> head_dense;
  std::optional<DenseLayer> head_out;
  Norm head_norm;
  std::optional<DenseLayer> pooler;  // LongformerModel where stored; multiple choice.

  PanelSizes sizes;  // Panels that every encoder linear allows.
  double parameters = 0;
  double memory_bytes = 0;  // Packs, copies, and the mapped tables.
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `compute` names and
// shapes are checked, nothing is read.
absl::StatusOr<LongformerWeights> LoadLongformerWeights(const LongformerConfig& config,
                                                        const Checkpoint& checkpoint,
                                                        const std::string& origin,
                                                        std::optional<Compute> compute);

// Takes the layers of a model that computes elsewhere: per layer its linears in the order of
// LongformerLayer, then EndLayer. Spans are gone after the call.
class LongformerLayerSink {
 public:
  virtual ~LongformerLayerSink() = default;
  // weight [out, in], bias [out]; `name` is for messages.
  virtual absl::Status Linear(const std::string& name, std::span<const float> weight,
                              std::span<const float> bias) = 0;
  virtual void EndLayer(const Norm& attention_norm, const Norm& output_norm) = 0;
};

// The host's share of such a model: embeddings and heads, in fp32; the layers go to `sink`.
absl::StatusOr<LongformerWeights> LoadLongformerHost(const LongformerConfig& config,
                                                     const Checkpoint& checkpoint,
                                                     const std::string& origin,
                                                     LongformerLayerSink& sink);

}  // namespace longview::models
