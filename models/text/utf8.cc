#include "models/text/utf8.h"

#include <algorithm>
#include <utility>

namespace longview::models {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The bytes after a lead byte: how many, and the range of the first of them, which is where
// overlong forms, surrogates and values above U+10FFFF are excluded.
struct Lead {
  int following = -1;  // -1 = not a lead byte.
  unsigned char low = 0x80, high = 0xbf;
};

Lead Classify(unsigned char byte) {
  if (byte < 0x80) return {0};
  if (byte < 0xc2) return {};
  if (byte < 0xe0) return {1};
  if (byte < 0xf0) {
    return {2, static_cast<unsigned char>(byte == 0xe0 ? 0xa0 : 0x80),
            static_cast<unsigned char>(byte == 0xed ? 0x9f : 0xbf)};
  }
  if (byte > 0xf4) return {};
  return {3, static_cast<unsigned char>(byte == 0xf0 ? 0x90 : 0x80),
          static_cast<unsigned char>(byte == 0xf4 ? 0x8f : 0xbf)};
}

// Bytes of the character at `at`, and whether it is complete and valid.
std::pair<size_t, bool> Character(std::string_view text, size_t at) {
  const Lead lead = Classify(static_cast<unsigned char>(text[at]));
  if (lead.following < 0) return {1, false};
  size_t length = 1;
  for (int i = 0; i < lead.following; ++i, ++length) {
    if (at + length >= text.size()) return {length, false};
    const auto byte = static_cast<unsigned char>(text[at + length]);
    const bool first = i == 0;
    if (byte < (first ? lead.low : 0x80) || byte > (first ? lead.high : 0xbf)) {
      return {length, false};
    }
  }
  return {length, true};
}

}  // namespace

int64_t CodePoints(std::string_view text) {
  return static_cast<int64_t>(text.size()) -
         std::count_if(text.begin(), text.end(), IsContinuation);
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const auto [length, valid] = Character(bytes, at);
    text.append(valid ? bytes.substr(at, length) : "\xef\xbf\xbd");
    at += length;
  }
  return text;
}

size_t IncompleteUtf8Suffix(std::string_view bytes) {
  constexpr size_t kLongest = 3;  // Most bytes of an incomplete character.
  for (size_t length = 1; length <= std::min(kLongest, bytes.size()); ++length) {
    const size_t at = bytes.size() - length;
    if (IsContinuation(bytes[at])) continue;
    const auto [valid_length, complete] = Character(bytes, at);
    const bool lead = Classify(static_cast<unsigned char>(bytes[at])).following >= 0;
    return lead && !complete && valid_length == length ? length : 0;
  }
  return 0;
}

}  // namespace longview::models
