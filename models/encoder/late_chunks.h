// Late chunking: which tokens of a text are one of its chunks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/encoder/item.h"
#include "models/encoder/sequence.h"
#include "models/model.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// Whether the request asks for it.
bool WantsChunks(const Request& request);

// INVALID_ARGUMENT names the field of settings that do not go together.
absl::Status CheckChunkSettings(const Request& request);

struct LateChunks {
  std::vector<int32_t> tokens;     // The text's tokens in the sequence, in the order of the text.
  std::vector<TokenRange> chunks;  // Ranges of `tokens`.
  std::vector<TextRange> ranges;   // In the text without its prompt.
};

// A token belongs to the chunks that hold its last code point; tokens of the template or of the
// prompt, masked ones and those without text, to none. INVALID_ARGUMENT names a chunk without
// tokens. REQUIRES: WantsChunks(request), whose settings are good; `encoding` is of prompt and
// text, `sequence` is what the encoder reads of it: `stripped` tokens fewer at the beginning,
// padding left out at the end.
absl::StatusOr<LateChunks> FindLateChunks(const Request& request, const std::string& prompt,
                                          const Encoding& encoding, const EncoderSequence& sequence,
                                          int stripped);

}  // namespace longview::models
