#include "models/text/tokenizer_codec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "models/text/utf8.h"

namespace longview::models {

namespace {

// GPT-2's alphabet: printable bytes of Latin-1 stand for themselves, the others for the code points
// from 256 on, in order.
constexpr int kAlphabetEnd = 324;
using Alphabet = std::array<int16_t, kAlphabetEnd>;

constexpr Alphabet MakeAlphabet() {
  Alphabet bytes{};
  for (int16_t& byte : bytes) byte = -1;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
    bytes[static_cast<size_t>(printable ? byte : next++)] = static_cast<int16_t>(byte);
  }
  return bytes;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

// The bytes a token of that alphabet is written with; unset if it has other characters. All of the
// alphabet's code points take one or two bytes of UTF-8.
std::optional<std::string> FromAlphabet(std::string_view token) {
  std::string bytes;
  for (size_t i = 0; i < token.size(); ++i) {
    auto code = static_cast<unsigned>(static_cast<unsigned char>(token[i]));
    if (code >= 0x80) {
      if ((code & 0xe0) != 0xc0 || i + 1 == token.size()) return std::nullopt;
      code = (code & 0x1f) << 6 | (static_cast<unsigned char>(token[++i]) & 0x3f);
    }
    if (code >= kAlphabetEnd || kAlphabet[code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet[code]));
  }
  return bytes;
}

// The byte of a token "<0x0A>", by which characters outside the vocabulary are written.
std::optional<std::string> FromByteToken(std::string_view token) {
  unsigned byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  const char* const end = token.data() + 5;
  const auto [read, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || read != end) return std::nullopt;
  return std::string(1, static_cast<char>(byte));
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> TokenizerCodec::Encode(std::string_view text) const {
  EncodeOptions options;
  options.add_special_tokens = false;
  ASSIGN_OR_RETURN(EncodeResult result, tokenizer_.Encode(text, options));
  return std::move(result.encoding.ids);
}

absl::StatusOr<TextTokens> TokenizerCodec::EncodeFirst(std::string_view text,
                                                       const TextBounds& bounds) const {
  if (bounds.uncounted) return EncodeAllThenFirst(*this, text, bounds);
  constexpr int64_t kMostKept = std::numeric_limits<int>::max();
  EncodeOptions options;
  options.add_special_tokens = false;
  options.max_length = static_cast<int>(std::clamp<int64_t>(bounds.keep, 1, kMostKept));
  TextTokens tokens;
  const std::string_view beginning = CountedBeginning(text);
  if (!bounds.cut && beginning.size() < text.size()) {
    ASSIGN_OR_RETURN(const EncodeResult first, tokenizer_.Encode(beginning, options));
    tokens.tokens = std::ssize(first.encoding.ids) + first.tokens_cut;
    tokens.counted = false;
    if (tokens.tokens / 2 > bounds.keep) return tokens;
    tokens.counted = true;
  }
  ASSIGN_OR_RETURN(EncodeResult result, tokenizer_.Encode(text, options));
  tokens.ids = std::move(result.encoding.ids);
  tokens.tokens = std::ssize(tokens.ids) + result.tokens_cut;
  tokens.counted = result.counted;
  if (tokens.tokens > bounds.keep) {
    tokens.ids.resize(bounds.cut ? static_cast<size_t>(bounds.keep) : 0);
  }
  return tokens;
}

// Added tokens are written as they are, specials not at all: the tokenizer's own decoder tells them
// from tokens of the alphabet.
std::string TokenizerCodec::Bytes(int32_t id) const {
  const std::array<int32_t, 1> ids = {id};
  absl::StatusOr<std::string> shown = tokenizer_.Decode(ids, true);
  if (!shown.ok() || shown->empty()) return "";
  const std::optional<std::string> token = tokenizer_.IdToToken(id);
  // The decoder tells bytes from tokens that are merely spelled so.
  if (std::optional<std::string> byte =
          token && *shown != *token ? FromByteToken(*token) : std::nullopt) {
    return *std::move(byte);
  }
  std::optional<std::string> bytes = token ? FromAlphabet(*token) : std::nullopt;
  return bytes && ReplaceInvalidUtf8(*bytes) == *shown ? *std::move(bytes) : *std::move(shown);
}

std::optional<std::string> ProblemOfRows(std::span<const int32_t> ids, int rows,
                                         const Tokenizer* tokenizer) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < rows) continue;
    const std::optional<std::string> spelling =
        tokenizer == nullptr ? std::nullopt : tokenizer->IdToToken(ids[i]);
    return absl::StrCat("token ", spelling ? absl::StrCat("\"", *spelling, "\" ") : "",
                        "at position ", i, " has id ", ids[i], ", the model's table has ", rows,
                        " rows");
  }
  return std::nullopt;
}

const Tokenizer* TokenizerOf(const TextCodec* codec) {
  const auto* const wrapped = dynamic_cast<const TokenizerCodec*>(codec);
  return wrapped == nullptr ? nullptr : &wrapped->tokenizer();
}

}  // namespace longview::models
