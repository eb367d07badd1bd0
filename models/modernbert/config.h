// config.json of a ModernBERT directory (Warner et al. 2024) as transformers writes it, in the form
// of release 4 (local_attention, global_attn_every_n_layers, *_rope_theta) and of release 5
// (layer_types, rope_parameters). Absent keys take ModernBertConfig's defaults; keys of training
// are of no interest; values that mean something else elsewhere are refused by name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/transformer/config.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// `common` is what the shared reader made of the same object. `max_tokens`: instead of
// max_position_embeddings, which no table bounds. INVALID_ARGUMENT begins with `origin` and names
// key, value and what is possible.
absl::StatusOr<TransformerConfig> ParseModernBertConfig(const nlohmann::json& json,
                                                        const CommonConfig& common,
                                                        const std::string& origin,
                                                        std::optional<int> max_tokens);

// HuggingFace's task classes.
std::span<const std::string_view> ModernBertArchitectures();

}  // namespace longview::models
