#include "models/text/tokenizer_overrides.h"

#include <nlohmann/json.hpp>

#include "models/config/json_reader.h"

namespace longview::models {
namespace {

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
