// config.json of a Transformer-LS text encoder directory (TransformerLSForSequenceClassification,
// TransformerLSForSequencePairClassification): the hyper-parameters of the Long Range Arena models
// of Zhu et al. 2021, section 4.1, by the keys of our format; there is no HuggingFace class.
// Unknown keys and values that the formulas do not cover are refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/encoder/facts.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// Layers in which a class vector that gathers the document takes part.
enum class LsClass {
  kNone,        // Nowhere: the mean over the tokens stands for the document.
  kLastLayer,   // A learned vector, in the last layer only (as published).
  kAllLayers,   // A learned vector, carried through all layers.
  kFirstToken,  // The token vocab_size - 1 at position 0, in all layers.
};

struct LsTextConfig {
  std::string architecture;  // architectures[0]
  EncoderHead head = EncoderHead::kSequenceClassification;
  int vocab = 0;
  int width = 0;         // d
  int heads = 0;         // h
  int layers = 0;        // L, layers applied.
  int intermediate = 0;  // f
  int positions = 0;     // Rows of the position table, max_seq_len.
  int window = 0;        // w: tokens of a group; 0: no window.
  int rank = 0;          // r: projected keys per head.
  LsClass cls = LsClass::kLastLayer;
  bool mean_over_limit = false;  // The mean divides by `positions`, not by the document's length.
  bool tied = false;             // One stored layer, applied L times.
  float norm_eps = 0;
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;

  int head_dim() const { return width / heads; }
  int columns() const { return heads * rank; }  // Projection scores of a token, head-major.
  // Positions before the document's first token.
  int first_position() const { return cls == LsClass::kFirstToken ? 1 : 0; }
  bool HasClass(int layer) const {
    return cls == LsClass::kLastLayer ? layer == layers - 1 : cls != LsClass::kNone;
  }
};

// Id of masked tokens, inside a document or behind it.
inline constexpr int kLsMaskedId = 0;

// `common` is what the shared reader made of the same object. INVALID_ARGUMENT begins with
// `origin` and names key, value and what is possible.
absl::StatusOr<LsTextConfig> ParseLsTextConfig(const nlohmann::json& json,
                                               const CommonConfig& common,
                                               const std::string& origin);

std::span<const std::string_view> LsTextArchitectures();

}  // namespace longview::models
