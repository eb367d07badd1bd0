// Builds a tokenizer.json from a SentencePiece vocabulary, as HuggingFace's converter does it for
// XLM-RoBERTa: its four tokens first, then the pieces behind SentencePiece's own three, the mask.
// Thread-safe: a pure function.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/text/tokenizer_class.h"
#include "nlohmann/json.hpp"

namespace longview::models {

// `bytes` is the file `name`. INVALID_ARGUMENT for classes and kinds of vocabularies that another
// rule holds for: it names them, and says how a tokenizer.json is made.
absl::StatusOr<nlohmann::json> ComposeUnigramTokenizer(const std::string& bytes,
                                                       std::string_view name,
                                                       const TokenizerClass& tokenizer_class);

}  // namespace longview::models
