// Which prompt stands in front of a text, by the request and the files of sentence-transformers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/config/sentence_config.h"
#include "models/model.h"

namespace longview::models {

// The text, "" for none. `config` may be null: there are no named prompts. INVALID_ARGUMENT names
// the field, and the keys there are.
absl::StatusOr<std::string> ResolvePrompt(const SentenceConfig* config, const Request& request);

}  // namespace longview::models
