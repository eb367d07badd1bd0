#include "models/text/tokenizer_json.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"

namespace longview::models {
namespace {

using nlohmann::json;

// One of the optional stages of the pipeline.
struct Stage {
  const char* key;
  const char* list;  // Member that holds the parts of a Sequence.
  std::initializer_list<std::string_view> types;
};

const Stage kNormalizer = {
    "normalizer",
    "normalizers",
    {"Sequence", "BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents",
     "Strip", "Replace", "Prepend", "Precompiled", "Nmt", "ByteLevel"}};
const Stage kPreTokenizer = {
    "pre_tokenizer",
    "pretokenizers",
    {"Sequence", "ByteLevel", "BertPreTokenizer", "Whitespace", "WhitespaceSplit", "Split",
     "Punctuation", "Digits", "Metaspace", "CharDelimiterSplit", "UnicodeScripts", "FixedLength"}};
const Stage kDecoder = {"decoder",
                        "decoders",
                        {"Sequence", "ByteLevel", "WordPiece", "Metaspace", "BPEDecoder", "Replace",
                         "ByteFallback", "Fuse", "Strip"}};
const Stage kPostProcessor = {
    "post_processor",
    "processors",
    {"Sequence", "RobertaProcessing", "BertProcessing", "TemplateProcessing", "ByteLevel"}};

absl::Status CheckStage(const json& value, const Stage& stage, const std::string& where,
                        absl::Status (*check_part)(const json&, const std::string&,
                                                   std::vector<TokenClaim>&),
                        std::vector<TokenClaim>& claims) {
  if (value.is_null()) return absl::OkStatus();
  JsonReader reader(value, where);
  const std::string type = reader.Choice("type", stage.types);
  if (!reader.status().ok()) return reader.status();
  if (type != "Sequence") {
    return check_part == nullptr ? absl::OkStatus() : check_part(value, where, claims);
  }
  const json* parts = reader.Find(stage.list);
  if (parts == nullptr || !parts->is_array()) {
    reader.Refuse(stage.list, "a list");
    return reader.status();
  }
  for (size_t i = 0; i < parts->size(); ++i) {
    const std::string part = absl::StrCat(where, "[", i, "]");
    absl::Status status = CheckStage((*parts)[i], stage, part, check_part, claims);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// ["</s>", 2]
absl::Status CheckTokenPair(const json& value, const std::string& where,
                            std::vector<TokenClaim>& claims) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() &&
      value[1].is_number_unsigned()) {
    claims.push_back({value[0].get<std::string>(), value[1].get<int64_t>(), where});
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": expected [token, id], found ", ShortJson(value)));
}

absl::Status CheckTemplate(const json& special, const std::string& where,
                           std::vector<TokenClaim>& claims) {
  for (const auto& [name, entry] : special.items()) {
    JsonReader reader(entry, absl::StrCat(where, ": special_tokens \"", name, "\""));
    const std::vector<std::string> tokens = reader.StringList("tokens");
    const std::vector<int64_t> ids = reader.IntList("ids");
    if (reader.status().ok() && tokens.size() != ids.size())
      reader.Refuse("ids", "as many as tokens");
    if (!reader.status().ok()) return reader.status();
    for (size_t i = 0; i < ids.size(); ++i) claims.push_back({tokens[i], ids[i], reader.origin()});
  }
  return absl::OkStatus();
}

// The crate matches post-processors by their fields alone, so the fields decide here whether the
// type is what the crate will take it for.
absl::Status CheckPostProcessor(const json& value, const std::string& where,
                                std::vector<TokenClaim>& claims) {
  JsonReader reader(value, where);
  const std::string type = reader.String("type");
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    if (type == "RobertaProcessing") {
      reader.RefuseUnknown({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
      reader.Bool("trim_offsets");
      reader.Bool("add_prefix_space");
    } else {
      reader.RefuseUnknown({"type", "sep", "cls"});
    }
    for (const char* key : {"sep", "cls"}) {
      if (!reader.Has(key)) reader.Refuse(key, "[token, id]");
      if (!reader.status().ok()) return reader.status();
      reader.Merge(CheckTokenPair(value[key], absl::StrCat(where, ": ", key), claims));
    }
  } else if (type == "ByteLevel") {
    reader.RefuseUnknown({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else {
    reader.RefuseUnknown({"type", "single", "pair", "special_tokens"});
    reader.Object("special_tokens");
    if (reader.status().ok()) reader.Merge(CheckTemplate(value["special_tokens"], where, claims));
  }
  return reader.status();
}

std::string TypeByShape(const json& model) {
  if (model.contains("merges")) return "BPE";
  if (model.contains("max_input_chars_per_word")) return "WordPiece";
  if (model.contains("unk_id")) return "Unigram";
  if (model.contains("vocab") && model["vocab"].is_object()) return "WordLevel";
  return "";
}

absl::Status CheckVocabulary(const json& vocab, const std::string& where) {
  std::unordered_map<int64_t, const std::string*> owners;
  for (auto item = vocab.begin(); item != vocab.end(); ++item) {
    const json& id = item.value();
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max() - 1;
    if (!id.is_number_unsigned() || id.get<uint64_t>() > static_cast<uint64_t>(kMax)) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": token \"", item.key(),
                                                     "\": expected an id in [0, ", kMax,
                                                     "], found ", ShortJson(id)));
    }
    const auto [owner, is_new] = owners.emplace(id.get<int64_t>(), &item.key());
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": tokens \"", *owner->second,
                                                     "\" and \"", item.key(),
                                                     "\" have the same id ", id.get<int64_t>()));
    }
  }
  return absl::OkStatus();
}

// Pieces with their scores, by id.
absl::Status CheckUnigram(const json& model, const std::string& where) {
  JsonReader reader(model, where);
  reader.RefuseUnknown({"type", "unk_id", "byte_fallback", "vocab"});
  const json* vocab = reader.Find("vocab");
  bool good = vocab != nullptr && vocab->is_array() && !vocab->empty();
  for (size_t i = 0; good && i < vocab->size(); ++i) {
    const json& piece = (*vocab)[i];
    good = piece.is_array() && piece.size() == 2 && piece[0].is_string() && piece[1].is_number();
  }
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": \"vocab\": expected a list of [piece, score]"));
  }
  if (reader.Has("unk_id")) reader.Int("unk_id", 0, std::ssize(*vocab) - 1);
  reader.BoolOr("byte_fallback", false);
  return reader.status();
}

absl::Status CheckModel(json& model, const std::string& where) {
  if (model.is_object() && !model.contains("type")) model["type"] = TypeByShape(model);
  JsonReader reader(model, where);
  const std::string type = reader.Choice("type", {"BPE", "WordPiece", "WordLevel", "Unigram"});
  if (type == "Unigram") return CheckUnigram(model, where);
  if (type == "BPE") {
    reader.RefuseUnknown({"type", "dropout", "unk_token", "continuing_subword_prefix",
                          "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
                          "vocab", "merges"});
    if (reader.NumberOr("dropout", 0) != 0)
      reader.Refuse("dropout", "null (encoding must not be random)");
    reader.BoolOr("byte_fallback", false);
  } else if (type == "WordPiece") {
    reader.RefuseUnknown(
        {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  } else {
    reader.RefuseUnknown({"type", "unk_token", "vocab"});
  }
  reader.Object("vocab");
  if (!reader.status().ok()) return reader.status();
  return CheckVocabulary(model["vocab"], where + ": vocab");
}

}  // namespace

absl::Status CheckTokenizerJson(json& document, const std::string& origin,
                                std::vector<TokenClaim>& claims) {
  JsonReader reader(document, origin);
  reader.RefuseUnknown({"version", "truncation", "padding", "added_tokens", "normalizer",
                        "pre_tokenizer", "post_processor", "decoder", "model"});
  reader.ChoiceOr("version", "1.0", {"1.0"});
  if (!reader.Has("model")) reader.Refuse("model", "an object");
  if (!reader.status().ok()) return reader.status();

  for (const Stage* stage : {&kNormalizer, &kPreTokenizer, &kDecoder, &kPostProcessor}) {
    const json* value = reader.Find(stage->key);
    if (value == nullptr) continue;
    reader.Merge(CheckStage(*value, *stage, absl::StrCat(origin, ": ", stage->key),
                            stage == &kPostProcessor ? CheckPostProcessor : nullptr, claims));
  }
  if (!reader.status().ok()) return reader.status();
  // Set anew for every request.
  document.erase("truncation");
  document.erase("padding");
  return CheckModel(document["model"], origin + ": model");
}

}  // namespace longview::models
