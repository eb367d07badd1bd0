#include "models/text/text_listing.h"

#include "absl/strings/str_cat.h"
#include "models/text/code_point_index.h"
#include "models/text/utf8.h"

namespace longview::models {
namespace {

absl::Status NoTokenizer() { return absl::UnimplementedError("the model has no tokenizer"); }

absl::Status BadText(const absl::Status& problem) {
  return absl::InvalidArgumentError(absl::StrCat("text: ", std::string(problem.message())));
}

absl::StatusOr<std::vector<TextToken>> ByTokenizer(const Tokenizer& tokenizer,
                                                   std::string_view text, bool add_special) {
  EncodeOptions options;
  options.add_special_tokens = add_special;
  const absl::StatusOr<EncodeResult> result = tokenizer.Encode(text, options);
  if (!result.ok()) return BadText(result.status());
  const Encoding& encoding = result->encoding;
  const CodePointIndex index(text);
  std::vector<TextToken> tokens(encoding.ids.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    TextToken& token = tokens[i];
    token.id = encoding.ids[i];
    token.special = encoding.special_mask[i] != 0;
    if (token.special) {
      token.text = tokenizer.IdToToken(token.id).value_or("");
      continue;
    }
    token.start = encoding.offsets[i].begin;
    token.end = encoding.offsets[i].end;
    token.text = index.Slice(token.start, token.end);
  }
  return tokens;
}

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

// A codec says what each token adds: as long as that is what the text has, places are known, and a
// part of a character stands where its character does.
absl::StatusOr<std::vector<TextToken>> ByCodec(const TextCodec& codec, std::string_view text) {
  const absl::StatusOr<std::vector<int32_t>> ids = codec.Encode(text);
  if (!ids.ok()) return BadText(ids.status());
  std::vector<TextToken> tokens(ids->size());
  size_t at = 0;       // Bytes of the text that the tokens so far stand for.
  int characters = 0;  // Characters that begin in these bytes.
  for (size_t i = 0; i < tokens.size(); ++i) {
    TextToken& token = tokens[i];
    token.id = (*ids)[i];
    std::string bytes = codec.Bytes(token.id);
    token.start = token.end = characters;
    if (!text.substr(at).starts_with(bytes)) {
      token.text = ReplaceInvalidUtf8(bytes);
      continue;
    }
    if (!bytes.empty() && !BeginsCharacter(bytes.front())) --token.start;
    for (const char byte : bytes) characters += BeginsCharacter(byte) ? 1 : 0;
    token.end = characters;
    // The whole characters that it is a part of.
    size_t begin = at, end = at += bytes.size();
    while (begin > 0 && begin < text.size() && !BeginsCharacter(text[begin])) --begin;
    while (end < text.size() && !BeginsCharacter(text[end])) ++end;
    token.text = ReplaceInvalidUtf8(text.substr(begin, end - begin));
  }
  return tokens;
}

}  // namespace

absl::StatusOr<std::vector<TextToken>> TextListing::Tokenize(std::string_view text,
                                                             bool add_special) const {
  if (tokenizer != nullptr) return ByTokenizer(*tokenizer, text, add_special);
  if (codec == nullptr) return NoTokenizer();
  absl::StatusOr<std::vector<TextToken>> tokens = ByCodec(*codec, text);
  if (tokens.ok() && add_special && bos) {
    tokens->insert(tokens->begin(), TextToken{.id = *bos, .text = "", .special = true});
  }
  return tokens;
}

absl::StatusOr<std::string> TextListing::Detokenize(std::span<const int32_t> ids,
                                                    bool skip_special) const {
  if (tokenizer != nullptr) return tokenizer->Decode(ids, skip_special);
  if (codec == nullptr) return NoTokenizer();
  std::string bytes;
  for (const int32_t id : ids) bytes += codec->Bytes(id);
  return ReplaceInvalidUtf8(bytes);
}

}  // namespace longview::models
