// Text as bytes and tokens: the only view of a tokenizer that generation needs. Bytes, because
// a token may end inside a character and what is generated need not be UTF-8.
//
// Implementations are immutable: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::models {

class TextCodec {
 public:
  virtual ~TextCodec() = default;

  // Tokens of a text, nothing added in front or behind. INVALID_ARGUMENT for bytes that the
  // tokenizer cannot take (message has the place).
  virtual absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const = 0;

  // Text that a token adds; empty for specials, unused ids and ids out of range. The text of
  // several tokens is the concatenation of theirs.
  virtual std::string Bytes(int32_t id) const = 0;
};

}  // namespace longview::models
