#include "models/text/dictionary.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace longview::models {

absl::StatusOr<Dictionary> Dictionary::Parse(std::string_view text, std::string_view origin) {
  Dictionary dictionary;
  dictionary.symbols_ = {"<s>", "<pad>", "</s>", "<unk>"};
  for (int32_t id = 0; id < 4; ++id) dictionary.ids_[dictionary.symbols_[id]] = id;

  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);

    const size_t space = line.rfind(' ');
    const std::string symbol(line.substr(0, std::min(space, line.size())));
    int64_t count = 0;
    const auto id = static_cast<int32_t>(dictionary.symbols_.size());
    const bool is_count =
        space != line.npos && absl::SimpleAtoi(std::string(line.substr(space + 1)), &count);
    if (symbol.empty() || !is_count || count < 0 || !dictionary.ids_.emplace(symbol, id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(origin), ": line ", number,
                       ": expected a new symbol, a space and its count, found \"",
                       std::string(line.substr(0, 64)), "\""));
    }
    dictionary.symbols_.push_back(symbol);
  }
  return dictionary;
}

std::vector<int32_t> Dictionary::EncodeLine(std::string_view symbols) const {
  std::vector<int32_t> ids;
  ForEachId(symbols, [&](int32_t id) { ids.push_back(id); });
  ids.push_back(kEos);
  return ids;
}

void Dictionary::ForEachId(std::string_view symbols, absl::FunctionRef<void(int32_t)> take) const {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  size_t at = symbols.find_first_not_of(kSpace);
  while (at != symbols.npos) {
    const size_t end = symbols.find_first_of(kSpace, at);
    const auto id = ids_.find(std::string(symbols.substr(at, end - at)));
    take(id == ids_.end() ? kUnk : id->second);
    at = symbols.find_first_not_of(kSpace, end);
  }
}

std::string_view Dictionary::Symbol(int32_t id) const {
  return id >= 0 && id < size() ? std::string_view(symbols_[id]) : std::string_view();
}

}  // namespace longview::models
