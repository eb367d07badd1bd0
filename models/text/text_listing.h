// A text as the list of its tokens for a person or a client, and back.
// Thread-safe: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/text/text_codec.h"
#include "models/text/tokenizer.h"
#include "models/tokenizing.h"

namespace longview::models {

// Tokenizing by a tokenizer, or else by a codec; with neither they are
// UNIMPLEMENTED.
struct TextListing {
  const Tokenizer* tokenizer = nullptr;
  const TextCodec* codec = nullptr;
  std::optional<int32_t> bos;  // Put in front of a codec's tokens.

  absl::StatusOr<std::vector<TextToken>> Tokenize(std::string_view text, bool add_special) const;
  absl::StatusOr<std::string> Detokenize(std::span<const int32_t> ids, bool skip_special) const;
};

}  // namespace longview::models
