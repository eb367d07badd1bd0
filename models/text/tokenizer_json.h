// A tokenizer.json before the tokenizers crate reads it: its checks, and its changes by
// tokenizer_config.json and by the tokenizer's class.
//
// The crate picks several components by their fields and not by their `type`, and skips what it
// does not know: a file can then load as something else. So every component's type must be one of
// those listed here, post-processors must have exactly their own fields, and settings that make
// encoding random are refused. A model without `type`, as in files before 2022, gets the one that
// its fields show.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/text/compose_tokenizer.h"
#include "models/text/tokenizer_class.h"
#include "models/text/tokenizer_directory.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// Adds what the file leaves implicit to `document`, appends to `claims` the ids that its
// template uses. INVALID_ARGUMENT begins with `origin` and names the component.
absl::Status CheckTokenizerJson(nlohmann::json& document, const std::string& origin,
                                std::vector<TokenClaim>& claims);

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
