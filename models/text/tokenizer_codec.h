// A HuggingFace tokenizer as generation sees it: no template, and every token as the bytes it adds,
// also where a token ends inside a character. For byte-level BPE (GPT-2, RoBERTa, LED), where a
// text is the concatenation of its tokens.
// Immutable: thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/text/bounded_codec.h"
#include "models/text/text_codec.h"
#include "models/text/tokenizer.h"

namespace longview::models {

class TokenizerCodec final : public TextCodec, public BoundedCodec {
 public:
  explicit TokenizerCodec(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  const Tokenizer& tokenizer() const { return tokenizer_; }

  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<TextTokens> EncodeFirst(std::string_view text,
                                         const TextBounds& bounds) const override;
  std::string Bytes(int32_t id) const override;

 private:
  const Tokenizer tokenizer_;
};

}  // namespace longview::models
