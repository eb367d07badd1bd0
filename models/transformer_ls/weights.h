// The weights of a Transformer-LS language model, packed for this machine or on a device, by the
// names of the published code's checkpoints (fairseq, prefix `decoder.model.`).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/weight_format.h"
#include "models/ops/weight_placer.h"
#include "models/transformer_ls/config.h"

namespace longview::models {

// Keys and values of a place before the text (spec of `zero_memory`).
enum LsZeroPart { kLsWindowKey, kLsWindowValue, kLsSegmentKey, kLsSegmentValue };
inline constexpr int kLsZeroParts = 4;

struct LsLmLayer {
  // Query, key, value and the scores of dconv_1 side by side: [3d + h * r, d].
  Weight project;
  Weight out;               // proj_out
  Weight expand, contract;  // ff.fc1, ff.fc2
  NormWeight norm1, norm2;
  NormWeight window_norm;   // dual_ln_win: of window keys and values.
  NormWeight segment_norm;  // dual_ln_dproj: of projected ones.
  // r_w_bias and r_r_bias [1, d], times sqrt(dh): the code adds them to the query after scaling,
  // the executor before.
  Table window_add, distance_add;
  // On a device: tables of positions of the longest text (positions.h), [h * entries, dh], and
  // blocks of zero memory [h * 64, pitch].
  TypedRows window_positions, segment_positions;
  std::array<TypedRows, kLsZeroParts> zero_blocks;
};

// Linears that make a layer's tables of positions on the host, in fp32 whatever the compute type.
struct LsLmPositions {
  DenseLayer distances, segments;  // r_net, r_net_chunk
};

struct LsLmWeights {
  Table words;                     // in_emb [V, d]
  std::vector<float> frequencies;  // pos_emb.inv_freq [d / 2]
  std::vector<LsLmLayer> layers;
  std::vector<LsLmPositions> positions;  // Per layer; the host's.
  // With zero memory, per layer: constant rows [d].
  std::vector<std::array<std::vector<float>, kLsZeroParts>> zero;
  Weight logits;  // out_emb [V, d]

  double parameters = 0;
  double memory_bytes = 0;  // On the host: packs, copies, and the kept table.

  // Whether all linears have second packs, for decoding on the host.
  bool packs_rows() const { return logits.host && logits.host->rows != nullptr; }
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, nothing is read. With `store` the weights go to a device, with the tables of
// texts of up to `max_tokens` tokens.
absl::StatusOr<LsLmWeights> LoadLsLmWeights(const LsLmConfig& config, const Checkpoint& checkpoint,
                                            const std::string& origin,
                                            std::optional<WeightFormat> format,
                                            DeviceStore* store = nullptr, int max_tokens = 0);

}  // namespace longview::models
