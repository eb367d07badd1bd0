// A text cut to a number of tokens.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/text/tokenizer.h"

namespace longview::models {

struct TextCut {
  std::string_view kept;  // Borrowed from the text.
  int tokens_cut = 0;     // At least, of long texts.
};

// The first `tokens` tokens of a text (`left`: the last), tokenised without a template. Never
// splits a character. Errors are Tokenizer::Encode's. REQUIRES: tokens > 0. Thread-safe.
absl::StatusOr<TextCut> CutText(const Tokenizer& tokenizer, std::string_view text, int tokens,
                                bool left);

}  // namespace longview::models
