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
#include "models/status_macros.h"

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
    RETURN_IF_ERROR(CheckStage((*parts)[i], stage, part, check_part, claims));
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

using nlohmann::json;

// The stage of a document, if it is of that type; else null.
json* StageOfType(json& document, const char* stage, const char* type) {
  json& found = document[stage];
  return found.is_object() && found.value("type", "") == type ? &found : nullptr;
}

// A flag of the configuration, else the constructor's value, else what the file has.
void ApplyFlag(JsonReader& reader, const char* flag, std::optional<bool> by_class, json* stage,
               const char* member) {
  if (stage == nullptr) return;
  if (reader.Has(flag)) {
    (*stage)[member] = reader.Bool(flag);
  } else if (by_class) {
    (*stage)[member] = *by_class;
  }
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

std::optional<int64_t> IdInDocument(const json& document, const std::string& token) {
  const auto added = document.find("added_tokens");
  const bool some = added != document.end() && added->is_array();
  for (size_t i = 0; some && i < added->size(); ++i) {
    const json& entry = (*added)[i];
    if (!entry.is_object() || entry.value("content", json()) != token) continue;
    if (entry.value("id", json()).is_number_integer()) return entry["id"].get<int64_t>();
  }
  const json& vocab = document["model"]["vocab"];
  if (vocab.is_object()) {
    const auto id = vocab.find(token);
    return id == vocab.end() ? std::nullopt : std::optional(id->get<int64_t>());
  }
  for (size_t i = 0; i < vocab.size(); ++i) {
    if (vocab[i][0].get_ref<const std::string&>() == token) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

TemplateTokens DefaultTemplateTokens(TokenizerKind kind) {
  if (kind == TokenizerKind::kBert) return {"[CLS]", "[SEP]"};
  return {"<s>", "</s>"};
}

void AddClassTemplate(TokenizerKind kind, const TemplateTokens& tokens, json& document) {
  if (kind == TokenizerKind::kUnknown || kind == TokenizerKind::kGeneric) return;
  if (document.contains("post_processor") && !document["post_processor"].is_null()) return;
  const std::optional<int64_t> cls = IdInDocument(document, tokens.cls);
  const std::optional<int64_t> sep = IdInDocument(document, tokens.sep);
  if (!cls || !sep) return;
  const auto make = kind == TokenizerKind::kBert ? BertTemplate : RobertaTemplate;
  document["post_processor"] =
      make(tokens, static_cast<uint64_t>(*cls), static_cast<uint64_t>(*sep));
  if (kind == TokenizerKind::kXlmRoberta) document["post_processor"]["trim_offsets"] = false;
}

absl::Status ApplyOverrides(const json& config, TokenizerKind kind, json& document) {
  JsonReader reader(config, "tokenizer_config.json");
  if (kind == TokenizerKind::kGeneric) return absl::OkStatus();
  std::optional<bool> yes, no;
  if (kind == TokenizerKind::kRoberta) no = false;
  if (kind == TokenizerKind::kRoberta || kind == TokenizerKind::kBert) yes = true;
  ApplyFlag(reader, "add_prefix_space", no, StageOfType(document, "pre_tokenizer", "ByteLevel"),
            "add_prefix_space");
  json* roberta = StageOfType(document, "post_processor", "RobertaProcessing");
  ApplyFlag(reader, "add_prefix_space", no, roberta, "add_prefix_space");
  if (kind == TokenizerKind::kRoberta)
    ApplyFlag(reader, "trim_offsets", yes, roberta, "trim_offsets");
  // Only BERT's constructor knows these; a directory without a class may be anybody's.
  json* bert = StageOfType(document, "normalizer", "BertNormalizer");
  if (bert == nullptr) return reader.status();
  const bool constructs = kind == TokenizerKind::kBert;
  if (constructs && !reader.Has("strip_accents")) (*bert)["strip_accents"] = nullptr;
  if (!constructs) yes.reset();
  ApplyFlag(reader, "do_lower_case", yes, bert, "lowercase");
  ApplyFlag(reader, "strip_accents", std::nullopt, bert, "strip_accents");
  ApplyFlag(reader, "tokenize_chinese_chars", yes, bert, "handle_chinese_chars");
  return reader.status();
}

}  // namespace longview::models
