// Changes of a tokenizer.json by tokenizer_config.json and by the tokenizer's class.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "models/text/compose_tokenizer.h"
#include "models/text/tokenizer_class.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// The id of a token of a tokenizer.json's vocabulary or added tokens.
std::optional<int64_t> IdInDocument(const nlohmann::json& document, const std::string& token);

// The names of a class's start and end where no file has them; the template is theirs.
TemplateTokens DefaultTemplateTokens(TokenizerKind kind);

// The template that a class builds where tokenizer.json has none. No change for other classes, or
// if `tokens` are not in the document.
void AddClassTemplate(TokenizerKind kind, const TemplateTokens& tokens, nlohmann::json& document);

// Flags of tokenizer_config.json that HuggingFace lets override the file; a class's constructor has
// its own values where the file says nothing. INVALID_ARGUMENT names the key.
absl::Status ApplyOverrides(const nlohmann::json& config, TokenizerKind kind,
                            nlohmann::json& document);

}  // namespace longview::models
