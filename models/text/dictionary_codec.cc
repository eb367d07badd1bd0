#include "models/text/dictionary_codec.h"

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"

namespace longview::models {

absl::StatusOr<std::unique_ptr<TextCodec>> DictionaryCodec::Read(const std::string& directory,
                                                                 const std::string& file,
                                                                 int vocabulary) {
  const std::string path = (std::filesystem::path(directory) / file).string();
  const absl::StatusOr<std::string> text = ReadFile(path, kLargestDictionary);
  if (absl::IsNotFound(text.status())) return std::unique_ptr<TextCodec>();
  if (!text.ok()) return text.status();
  ASSIGN_OR_RETURN(Dictionary dictionary, Dictionary::Parse(*text, path));
  if (dictionary.size() > vocabulary) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", dictionary.size() - 4, " symbols and 4 specials make ",
                     dictionary.size(), " ids, the model has ", vocabulary));
  }
  return std::make_unique<DictionaryCodec>(std::move(dictionary));
}

absl::StatusOr<std::vector<int32_t>> DictionaryCodec::Encode(std::string_view text) const {
  std::vector<int32_t> ids = dictionary_.EncodeLine(text);
  ids.pop_back();  // The end of a line, which is the model's to add.
  return ids;
}

absl::StatusOr<TextTokens> DictionaryCodec::EncodeFirst(std::string_view text,
                                                        const TextBounds& bounds) const {
  FirstTokens first(bounds);
  dictionary_.ForEachId(text, [&](int32_t id) { first.Take(id); });
  return first.Result();
}

std::string DictionaryCodec::Bytes(int32_t id) const {
  constexpr std::string_view kGoesOn = "@@";
  const std::string_view symbol = id < 4 ? std::string_view() : dictionary_.Symbol(id);
  if (symbol.empty() || symbol.starts_with("madeupword")) return {};
  if (symbol.ends_with(kGoesOn)) return std::string(symbol.substr(0, symbol.size() - 2));
  return std::string(symbol) + " ";
}

}  // namespace longview::models
