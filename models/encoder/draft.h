// A request's sequences on their way to the encoder: token ids with masks, before checks and
// defaults are applied. Internal to Prepare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/encoder/prepare.h"
#include "models/model.h"

namespace longview::models {

struct SequenceDraft {
  std::string field;                 // The name in messages: "text", "token_ids", "choices[2]".
  TokenInput tokens;                 // The model's input.
  std::optional<Encoding> encoding;  // Set for text.
  int truncated = 0;
};

// INVALID_ARGUMENT "field: problem".
absl::Status BadRequest(const std::string& field, const std::string& problem);

// The request's sequences, tokenised and cut to the limit where it asks for that. `prompt` stands
// in front of its text, and stays where the text is cut.
absl::StatusOr<std::vector<SequenceDraft>> DraftSequences(const EncoderFrontEnd& front,
                                                          const Request& request,
                                                          const std::string& prompt = "");

// Whether the encoder is given the tokenizer's token types. REQUIRES: there is a tokenizer.
bool ReadsTypes(const EncoderFrontEnd& front);

// Tokens at the beginning of a prompted text that are the prompt's: what it gives alone, without a
// special token at its end.
absl::StatusOr<int> PromptTokens(const EncoderFrontEnd& front, const std::string& prompt);

}  // namespace longview::models
