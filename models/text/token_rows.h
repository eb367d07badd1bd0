// Tokens without a row in a model's embedding table: added to its tokenizer, but not to the model.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "models/text/text_codec.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// The first of a text's tokens without a row, with its spelling, place, id and the count of rows,
// as the problem of a message; unset: all have one. `tokenizer` may be null.
std::optional<std::string> ProblemOfRows(std::span<const int32_t> ids, int rows,
                                         const Tokenizer* tokenizer);

// The tokenizer behind `codec`; null: none of HuggingFace's.
const Tokenizer* TokenizerOf(const TextCodec* codec);

}  // namespace longview::models
