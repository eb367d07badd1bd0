#include "client/cli/utf8.h"

#include <cstdint>

namespace longview::client {
namespace {

struct Sequence {
  size_t length;  // Bytes that belong together: the character, or the invalid part.
  bool valid;
};

// Lead bytes and the range their second byte must be in (Unicode Standard, table 3-7).
struct Lead {
  size_t length;
  uint8_t second_low;
  uint8_t second_high;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// REQUIRES: text is not empty.
Sequence First(std::string_view text) {
  const Lead lead = LeadOf(static_cast<uint8_t>(text[0]));
  if (lead.length == 0) return {1, false};
  for (size_t i = 1; i < lead.length; ++i) {
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (i >= text.size()) return {i, false};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if (byte < low || byte > high) return {i, false};
  }
  return {lead.length, true};
}

}  // namespace

std::optional<size_t> FirstInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Sequence sequence = First(text.substr(at));
    if (!sequence.valid) return at;
    at += sequence.length;
  }
  return std::nullopt;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Sequence sequence = First(text.substr(at));
    if (sequence.valid) {
      out.append(text.substr(at, sequence.length));
    } else {
      out.append("\xEF\xBF\xBD");
    }
    at += sequence.length;
  }
  return out;
}

}  // namespace longview::client
