// config.json of a BERT, RoBERTa or XLM-RoBERTa directory (Devlin et al. 2019, Liu et al. 2019,
// Conneau et al. 2020) as HuggingFace writes it. Absent keys take BertConfig's and
// XLMRobertaConfig's defaults; the latter are not the published models' values. Values that mean
// something else elsewhere are refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/transformer/config.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// `common` is what the shared reader made of the same object. INVALID_ARGUMENT begins with
// `origin` and names key, value and what is possible.
absl::StatusOr<TransformerConfig> ParseRobertaConfig(const nlohmann::json& json,
                                                     const CommonConfig& common,
                                                     const std::string& origin);

absl::StatusOr<TransformerConfig> ParseBertConfig(const nlohmann::json& json,
                                                  const CommonConfig& common,
                                                  const std::string& origin);

// HuggingFace's task classes.
std::span<const std::string_view> BertArchitectures();
std::span<const std::string_view> RobertaArchitectures();

}  // namespace longview::models
