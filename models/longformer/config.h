// config.json of a Longformer directory as HuggingFace writes it (LongformerConfig), plus our key
// `attention_dilation`. Absent keys take LongformerConfig's defaults, which are not the
// published models' values. Values that mean something else elsewhere are refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/config/json_reader.h"
#include "models/dense/rowwise.h"
#include "models/encoder/facts.h"
#include "models/model.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

struct LongformerConfig {
  std::string architecture;  // architectures[0]
  EncoderHead head = EncoderHead::kNone;
  int vocab = 0;
  int width = 0;  // H, hidden_size
  int layers = 0;
  int heads = 0;
  int intermediate = 0;
  int positions = 0;  // Rows of the position table.
  int types = 0;      // Rows of the token type table.
  int pad = 0;
  int sep = 0;
  std::vector<int> window;                 // One-sided, per layer: attention_window / 2.
  std::vector<std::vector<int>> dilation;  // Per layer, then per head; empty inside: all 1.
  Activation activation = Activation::kGelu;
  float norm_eps = 0;
  bool tied = true;  // tie_word_embeddings
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;

  int head_dim() const { return width / heads; }
  // The first real token has position pad + 1.
  int max_tokens() const { return positions - pad - 1; }
};

// `common` is what the shared reader made of the same object. INVALID_ARGUMENT begins with
// `origin` and names key, value and what is possible.
absl::StatusOr<LongformerConfig> ParseLongformerConfig(const nlohmann::json& json,
                                                       const CommonConfig& common,
                                                       const std::string& origin);

// attention_window, one for all or one per layer: two-sided in the file, one-sided in the config.
// Families with this attention share it; problems are the reader's status. REQUIRES: config.layers,
// which `layers_key` says.
void ReadWindows(JsonReader& reader, std::string_view layers_key, LongformerConfig& config);

// HuggingFace's task classes.
std::span<const std::string_view> LongformerArchitectures();

}  // namespace longview::models
