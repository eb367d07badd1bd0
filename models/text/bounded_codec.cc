#include "models/text/bounded_codec.h"

#include <utility>

#include "models/text/utf8.h"

namespace longview::models {

std::string_view CountedBeginning(std::string_view text) {
  constexpr size_t kCounted = size_t{4} << 20;
  if (text.size() <= kCounted) return text;
  text = text.substr(0, kCounted);
  return text.substr(0, text.size() - IncompleteUtf8Suffix(text));
}

absl::StatusOr<TextTokens> EncodeFirst(const TextCodec& codec, std::string_view text,
                                       const TextBounds& bounds) {
  if (const auto* bounded = dynamic_cast<const BoundedCodec*>(&codec)) {
    return bounded->EncodeFirst(text, bounds);
  }
  absl::StatusOr<std::vector<int32_t>> ids = codec.Encode(text);
  if (!ids.ok()) return ids.status();
  TextTokens result;
  result.tokens = std::ssize(*ids);
  if (!ids->empty()) result.last = ids->back();
  result.ids = *std::move(ids);
  if (result.tokens > bounds.keep) {
    result.ids.resize(bounds.cut ? static_cast<size_t>(bounds.keep) : 0);
  }
  return result;
}

}  // namespace longview::models
