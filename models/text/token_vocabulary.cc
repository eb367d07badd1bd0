#include "models/text/token_vocabulary.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longview::models {

absl::StatusOr<TokenVocabulary> TokenVocabulary::Create(const std::vector<std::string>& tokens) {
  TokenVocabulary vocabulary;
  for (const std::string& token : tokens) {
    const auto id = static_cast<int32_t>(vocabulary.ids_.size()) + 1;
    if (token.empty() || !vocabulary.ids_.emplace(token, id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, " of the vocabulary, \"", token, "\", is empty or repeated"));
    }
  }
  return vocabulary;
}

std::vector<int32_t> TokenVocabulary::Encode(std::string_view text) const {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  std::vector<int32_t> ids;
  size_t at = text.find_first_not_of(kSpace);
  while (at != text.npos) {
    const size_t end = text.find_first_of(kSpace, at);
    const auto id = ids_.find(text.substr(at, end - at));
    ids.push_back(id == ids_.end() ? size() - 1 : id->second);
    at = text.find_first_not_of(kSpace, end);
  }
  return ids;
}

std::string RenameListOps(std::string_view source) {
  std::string renamed;
  for (char c : source) {
    if (c == ']') c = 'X';
    if (c != '(' && c != ')') renamed.push_back(c);
  }
  return renamed;
}

}  // namespace longview::models
