// The Transformer module of a directory of sentence-transformers: the folder that it lies in, and
// its limits of texts.
// Thread-safe: pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace longview::models {

// modules.json of a directory, a list. NOT_FOUND without one.
absl::StatusOr<nlohmann::json> ReadModuleList(const std::string& directory);

// Whether a module's `path` leads to the directory or a folder below it.
bool IsInside(const std::string& path);

// The folder with config.json, weights and tokenizer: the `path` of the Transformer in
// modules.json, else `directory` itself. A list that is broken is for its reader to refuse.
std::string FindTransformer(const std::string& directory);

struct TextLimits {
  std::optional<int> max_tokens;  // max_seq_length
  bool lower_case = false;        // do_lower_case: of texts, in front of the tokenizer.
};

// The first of sentence_<type>_config.json, in the library's order of types, in the Transformer's
// folder. INVALID_ARGUMENT names the file and the key.
absl::StatusOr<TextLimits> ReadTextLimits(const std::string& folder);

}  // namespace longview::models
