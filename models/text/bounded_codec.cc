#include "models/text/bounded_codec.h"

#include "models/status_macros.h"
#include "models/text/utf8.h"

namespace longview::models {

std::string_view CountedBeginning(std::string_view text) {
  constexpr size_t kCounted = size_t{4} << 20;
  if (text.size() <= kCounted) return text;
  text = text.substr(0, kCounted);
  return text.substr(0, text.size() - IncompleteUtf8Suffix(text));
}

absl::StatusOr<TextTokens> EncodeAllThenFirst(const TextCodec& codec, std::string_view text,
                                              const TextBounds& bounds) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, codec.Encode(text));
  FirstTokens first(bounds);
  for (const int32_t id : ids) first.Take(id);
  return first.Result();
}

absl::StatusOr<TextTokens> EncodeFirst(const TextCodec& codec, std::string_view text,
                                       const TextBounds& bounds) {
  if (const auto* bounded = dynamic_cast<const BoundedCodec*>(&codec)) {
    return bounded->EncodeFirst(text, bounds);
  }
  return EncodeAllThenFirst(codec, text, bounds);
}

}  // namespace longview::models
