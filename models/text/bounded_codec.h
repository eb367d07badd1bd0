// Texts of any length as the first of their tokens, in memory bounded by what is kept.
// Thread-safe as TextCodec.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/text/text_codec.h"

namespace longview::models {

struct TextBounds {
  int64_t keep = 0;  // Tokens.
  bool cut = false;  // The first `keep` are wanted of a longer text too; else it has no ids.
};

// The part of a text with a token limit that is tokenised first: all of it, or the beginning of a
// very long one. If that has more than twice the limit, so has the whole text, wherever it was cut.
std::string_view CountedBeginning(std::string_view text);

// The tokens of a text, or the first of them.
struct TextTokens {
  std::vector<int32_t> ids;
  int64_t tokens = 0;  // Count of the whole text; a lower bound if not `counted`.
  bool counted = true;
  std::optional<int32_t> last;  // Last id of the whole text, where the codec knows it.
};

// A codec that need not hold all tokens of a text at once.
class BoundedCodec {
 public:
  virtual ~BoundedCodec() = default;

  // As TextCodec::Encode of the whole, then cut.
  virtual absl::StatusOr<TextTokens> EncodeFirst(std::string_view text,
                                                 const TextBounds& bounds) const = 0;
};

// By BoundedCodec, where `codec` is one.
absl::StatusOr<TextTokens> EncodeFirst(const TextCodec& codec, std::string_view text,
                                       const TextBounds& bounds);

}  // namespace longview::models
