// A request's wishes beside what the files of sentence-transformers say: how the rows of a
// document's tokens become a vector, which prompt stands in front of a text.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/sentence_config.h"
#include "models/encoder/prepare.h"
#include "models/model.h"

namespace longview::models {

// The modes that the request or the directory names; none: the family's pooling. INVALID_ARGUMENT
// names what is no mode, and a mode that a Dense module cannot follow. REQUIRES: the request's
// pooling is neither "pooler" nor "none".
absl::StatusOr<std::vector<PoolMode>> PoolModesOf(const EncoderFrontEnd& front,
                                                  const Request& request);

// Whether a part of the rows can be pooled like all of them: by mean or max.
absl::StatusOr<bool> PoolsParts(const EncoderFrontEnd& front, const Request& request);

// The text of the prompt, "" for none. `config` may be null: there are no named prompts.
// INVALID_ARGUMENT names the field, and the keys there are.
absl::StatusOr<std::string> ResolvePrompt(const SentenceConfig* config, const Request& request);

}  // namespace longview::models
