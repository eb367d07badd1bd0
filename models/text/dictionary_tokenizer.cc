#include "models/text/dictionary_tokenizer.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"
#include "models/text/dictionary.h"
#include "nlohmann/json.hpp"

namespace longview::models {
namespace {

using nlohmann::json;

json TemplatePart(const char* kind, const std::string& id, int type) {
  return {{kind, {{"id", id}, {"type_id", type}}}};
}

// RoBERTa's pairs: both texts end, and the second begins with another end.
json Template(const DictionaryTemplate& model, const json& vocab) {
  const std::string eos = "</s>";
  const json first = TemplatePart("SpecialToken", model.first, 0);
  const json end = TemplatePart("SpecialToken", eos, 0);
  const auto special = [&](const std::string& token) {
    return json{{"id", token}, {"ids", {vocab[token]}}, {"tokens", {token}}};
  };
  const json a = TemplatePart("Sequence", "A", 0), b = TemplatePart("Sequence", "B", 0);
  if (model.first.empty()) {
    return {{"type", "TemplateProcessing"},
            {"single", {a, end}},
            {"pair", {a, end, b, end}},
            {"special_tokens", {{eos, special(eos)}}}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", {first, a, end}},
          {"pair", {first, a, end, end, b, end}},
          {"special_tokens", {{model.first, special(model.first)}, {eos, special(eos)}}}};
}

}  // namespace

absl::StatusOr<TokenizerSource> ReadDictionaryTokenizer(const std::string& directory,
                                                        const DictionaryTemplate& model,
                                                        const std::string& file) {
  TokenizerSource source;
  source.origin = (std::filesystem::path(directory) / file).string();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(source.origin, kLargestDictionary));
  ASSIGN_OR_RETURN(const Dictionary dictionary, Dictionary::Parse(text, source.origin));
  json vocab = json::object();
  for (int32_t id = 0; id < dictionary.size(); ++id) {
    vocab[std::string(dictionary.Symbol(id))] = id;
  }
  const bool adds = !model.added.empty();
  if (adds && (dictionary.size() > model.added_id || vocab.contains(model.added))) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.origin, ": ", dictionary.size() - 4, " symbols and 4 specials, but ",
                     model.added, " has the id ", model.added_id, " behind them and no line"));
  }
  if (adds) vocab[model.added] = model.added_id;
  source.roles = {{"unk_token", "<unk>"}, {"pad_token", "<pad>"}, {"eos_token", "</s>"}};
  if (model.mask) source.roles["mask_token"] = model.added;
  const json document = {
      {"version", "1.0"},
      {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
      {"post_processor", Template(model, vocab)},
      {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "<unk>"}}}};
  source.json = document.dump();
  return source;
}

}  // namespace longview::models
