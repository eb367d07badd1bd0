// A HuggingFace tokenizer as generation sees it: no template, and every token as the bytes it adds,
// also where a token ends inside a character. For byte-level BPE (GPT-2, RoBERTa, LED), where a
// text is the concatenation of its tokens.
// Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

// The first of a text's tokens without a row in a model's embedding table (added to its tokenizer,
// but not to the model), with its spelling, place, id and the count of rows,
// as the problem of a message; unset: all have one. `tokenizer` may be null.
std::optional<std::string> ProblemOfRows(std::span<const int32_t> ids, int rows,
                                         const Tokenizer* tokenizer);

// The tokenizer behind `codec`; null: none of HuggingFace's.
const Tokenizer* TokenizerOf(const TextCodec* codec);

}  // namespace longview::models
