// The weights of a Transformer-LS language model, packed for this machine, by the names of the
// published code's checkpoints (fairseq, prefix `decoder.model.`). The embedding table stays in
// the mapped file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/layer.h"
#include "models/layers/weight_loader.h"
#include "models/transformer_ls/config.h"

namespace longview::models {

inline constexpr float kLsNormEps = 1e-5f;

// What a layer has beside its linears.
struct LsLmVectors {
  Norm norm1, norm2;
  Norm window_norm;   // dual_ln_win: of window keys and values.
  Norm segment_norm;  // dual_ln_dproj: of projected ones.
  // r_w_bias [h, dh], times sqrt(dh): the code adds it to the query after scaling, the executor
  // before.
  std::vector<float> window_add;
};

struct LsLmLayer : LsLmVectors {
  // These four and the logits have second packs for the few rows of a decode step, all or none.
  // Query, key, value and the scores of dconv_1 side by side: [3d + h * r, d].
  DenseLayer project;
  DenseLayer out;       // proj_out
  DenseLayer expand;    // ff.fc1
  DenseLayer contract;  // ff.fc2
};

// What a layer knows of positions: r_net and r_net_chunk, which only make tables (positions.h) and
// are fp32 whatever the compute type; r_r_bias [h, dh], times sqrt(dh) as window_add.
struct LsLmPositions {
  DenseLayer distances, segments;
  std::vector<float> distance_add;
};

// What a place before the text gives as key and value (spec of `zero_memory`): constants of a
// layer, [d] each.
struct LsLmZeroRow {
  std::vector<float> window_key, window_value, segment_key, segment_value;
};

struct LsLmWeights {
  const TensorView* words = nullptr;  // in_emb [V, d], in the checkpoint.
  std::vector<float> frequencies;     // pos_emb.inv_freq [d / 2]
  std::vector<LsLmLayer> layers;
  std::vector<LsLmPositions> positions;  // Per layer.
  std::vector<LsLmZeroRow> zero;         // Per layer; empty without zero memory.
  std::optional<DenseLayer> logits;      // out_emb [V, d]; set once loaded.

  PanelSizes sizes;  // Panels that every linear of a layer allows.
  double parameters = 0;
  double memory_bytes = 0;  // Packs, copies and the mapped table.

  bool few_rows() const { return logits && logits->rows != nullptr; }
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `compute` names and
// shapes are checked, nothing is read.
absl::StatusOr<LsLmWeights> LoadLsLmWeights(const LsLmConfig& config, const Checkpoint& checkpoint,
                                            const std::string& origin,
                                            std::optional<Compute> compute);

// Takes the layers of a model that computes elsewhere: the logits' linear first, then per layer its
// linears in the order of LsLmLayer and its vectors. Spans are gone after the call.
class LsLmLayerSink {
 public:
  virtual ~LsLmLayerSink() = default;
  // weight [out, in], bias [out]; `name` is for messages.
  virtual absl::Status Linear(const std::string& name, std::span<const float> weight,
                              std::span<const float> bias) = 0;
  virtual void EndLayer(const LsLmVectors& vectors) = 0;
};

// The host's share of such a model: embeddings, frequencies and what makes tables of positions; the
// rest goes to `sink`, zero memory is left out.
absl::StatusOr<LsLmWeights> LoadLsLmHost(const LsLmConfig& config, const Checkpoint& checkpoint,
                                         const std::string& origin, LsLmLayerSink& sink);

}  // namespace longview::models
