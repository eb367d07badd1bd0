// Texts of any length as the first of their tokens, in memory bounded by what is kept.
// Thread-safe as TextCodec.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/text/text_codec.h"

namespace longview::models {

struct TextBounds {
  int64_t keep = 0;  // Tokens.
  bool cut = false;  // The first `keep` are wanted of a longer text too; else it has no ids.
  // Tokens of that id are not counted: those between the ones that are kept are, too, but no more
  // than `keep` and one.
  std::optional<int32_t> uncounted = std::nullopt;
};

// The part of a text with a token limit that is tokenised first: all of it, or the beginning of a
// very long one. If that has more than twice the limit, so has the whole text, wherever it was cut.
std::string_view CountedBeginning(std::string_view text);

// The tokens of a text, or the first of them.
struct TextTokens {
  std::vector<int32_t> ids;
  int64_t tokens = 0;  // Count of the whole text; a lower bound if not `counted`.
  bool counted = true;
  std::optional<int32_t> last;  // Last counted id of the whole text, where the codec knows it.
};

// Makes that of all tokens, shown one after the other.
class FirstTokens {
 public:
  explicit FirstTokens(const TextBounds& bounds) : bounds_(bounds) {}

  void Take(int32_t id) {
    if (id == bounds_.uncounted) {
      if (uncounted_ > bounds_.keep) return;
      if (result_.tokens <= bounds_.keep) ++uncounted_;
    } else {
      ++result_.tokens;
      result_.last = id;
    }
    if (result_.tokens <= bounds_.keep) result_.ids.push_back(id);
  }
  // To be called last, and once.
  TextTokens Result() {
    if (result_.tokens > bounds_.keep && !bounds_.cut) result_.ids.clear();
    return std::move(result_);
  }

 private:
  const TextBounds bounds_;
  int64_t uncounted_ = 0;  // Uncounted tokens that were kept.
  TextTokens result_;
};

// A codec that need not hold all tokens of a text at once.
class BoundedCodec {
 public:
  virtual ~BoundedCodec() = default;

  // Encodes the whole as TextCodec::Encode does, then cuts.
  virtual absl::StatusOr<TextTokens> EncodeFirst(std::string_view text,
                                                 const TextBounds& bounds) const = 0;
};

// From all tokens at once.
absl::StatusOr<TextTokens> EncodeAllThenFirst(const TextCodec& codec, std::string_view text,
                                              const TextBounds& bounds);

// By BoundedCodec, where `codec` is one.
absl::StatusOr<TextTokens> EncodeFirst(const TextCodec& codec, std::string_view text,
                                       const TextBounds& bounds);

}  // namespace longview::models
