#include "models/encoder/cut_text.h"

#include <algorithm>

namespace longview::models {
namespace {

bool BeginsCharacter(std::string_view text, size_t at) {
  return at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

}  // namespace

absl::StatusOr<TextCut> CutText(const Tokenizer& tokenizer, std::string_view text, int tokens,
                                bool left) {
  const EncodeOptions options = {.add_special_tokens = false,
                                 .max_length = tokens,
                                 .cut_left = left,
                                 .offsets = OffsetUnit::kBytes};
  const absl::StatusOr<EncodeResult> result = tokenizer.Encode(text, options);
  if (!result.ok()) return result.status();
  TextCut cut = {text, result->tokens_cut};
  if (cut.tokens_cut == 0) return cut;
  size_t begin = text.size(), end = 0;
  for (const Encoding::Range& range : result->encoding.offsets) {
    begin = std::min(begin, static_cast<size_t>(range.begin));
    end = std::max(end, static_cast<size_t>(range.end));
  }
  if (left) {
    while (!BeginsCharacter(text, begin)) ++begin;
    cut.kept = text.substr(std::min(begin, text.size()));
  } else {
    end = std::min(end, text.size());
    while (!BeginsCharacter(text, end)) --end;
    cut.kept = text.substr(0, end);
  }
  return cut;
}

}  // namespace longview::models
