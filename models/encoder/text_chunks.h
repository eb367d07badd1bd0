// Chunks of a text: which of its tokens belong to which.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// INVALID_ARGUMENT names the field of settings that do not go together.
absl::Status CheckChunkSettings(const Request& request);

struct TextChunks {
  TokenChunks tokens;             // Positions in the encoding.
  std::vector<TextRange> ranges;  // In the text without its prompt.
};

// A token belongs to the chunks that hold its last code point; tokens of the template or of the
// prompt, those of id `masked` (-1: none) and those without text, to none. INVALID_ARGUMENT names
// a chunk without tokens. REQUIRES: CheckChunkSettings is OK; `encoding` is of prompt and text.
absl::StatusOr<TextChunks> FindTextChunks(const Request& request, const std::string& prompt,
                                          const Encoding& encoding, int32_t masked);

}  // namespace longview::models
