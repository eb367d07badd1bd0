#include "models/text/token_rows.h"

#include "absl/strings/str_cat.h"
#include "models/text/tokenizer_codec.h"

namespace longview::models {

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
