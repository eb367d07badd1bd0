#include "models/luna/config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/luna/config_keys.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kArchitectures = {
    "LunaForSequenceClassification", "LunaForSequencePairClassification", "LunaForMaskedLM"};

void ReadHead(JsonReader& reader, LunaConfig& config) {
  std::string by_architecture = "lra_classifier";
  if (config.architecture == kArchitectures[1]) by_architecture = "lra_matching";
  if (config.architecture == kArchitectures[2]) by_architecture = "masked_lm";
  const std::string head = reader.StringOr("head", by_architecture);
  const bool sentence = head == "sequence_classification" && by_architecture == "lra_classifier";
  if (head != by_architecture && !sentence) {
    return reader.Refuse("head", absl::StrCat("the head of a ", config.architecture));
  }
  if (head == "lra_matching") config.task = EncoderHead::kPairClassification;
  if (head == "masked_lm") {
    config.task = EncoderHead::kMaskedLm;
    config.head = LunaHead::kMaskedLm;
  }
  if (!sentence) return;
  config.head_name = reader.String("classification_head");
  config.head = LunaHead::kSentence;
  if (config.head_name == "pooling_classification_head") config.head = LunaHead::kProjectedMax;
  if (config.head_name == "attention_classification_head") config.head = LunaHead::kProjectedHead;
  config.pooler_activation = ReadLunaActivation(reader, "pooler_activation", "tanh");
}

void ReadSizes(JsonReader& reader, LunaConfig& config) {
  const auto read = [&](std::string_view key, int64_t min, int64_t max) {
    return static_cast<int>(reader.Int(key, min, max));
  };
  config.vocab = read("vocab_size", 2, 1 << 24);
  config.width = read("hidden_size", 1, 1 << 16);
  config.intermediate = read("ffn_size", 1, 1 << 20);
  config.layers = read("num_layers", 1, 1024);
  config.heads = read("num_heads", 1, 1024);
  config.pack_heads = static_cast<int>(reader.IntOr("num_proj_heads", config.heads, 1, 1024));
  config.projected = read("proj_len", 1, 1 << 20);
  config.max_tokens = read("max_positions", 1, 1 << 24);
  config.pad = static_cast<int>(reader.IntOr("pad_token_id", 1, 0, 1 << 24));
  config.eos = static_cast<int>(reader.IntOr("eos_token_id", 2, 0, 1 << 24));
  const char* added = config.is_lra() ? "cls_token_id" : "mask_token_id";
  config.added = static_cast<int>(reader.IntOr(added, config.vocab - 1, 0, 1 << 24));
  config.norm_eps = static_cast<float>(reader.NumberOr("layer_norm_eps", 1e-5));
  config.embed_scale = static_cast<float>(reader.NumberOr("embed_scale", 1));
  if (!reader.status().ok()) return;
  CheckLunaHeads(reader, "num_heads", config.heads, config.width);
  CheckLunaHeads(reader, "num_proj_heads", config.pack_heads, config.width);
  for (const auto& [key, id] : {std::pair<const char*, int>{"pad_token_id", config.pad},
                                {"eos_token_id", config.eos},
                                {added, config.added}}) {
    if (id >= config.vocab) reader.Refuse(key, "an id below vocab_size");
  }
  if (!(config.norm_eps >= 0)) reader.Refuse("layer_norm_eps", "a number of at least 0");
}

void ReadLayers(JsonReader& reader, LunaConfig& config) {
  config.dynamic = reader.BoolOr("dynamic_projection", true);
  config.tied_kv = reader.BoolOr("tie_kv", !config.is_lra());
  config.tied_layers = reader.BoolOr("tie_layer_weights", false);
  const bool translates = config.head == LunaHead::kNone;
  const bool pre = reader.ChoiceOr("norm_position", "post", {"post", "pre"}) == "pre";
  config.norms = pre ? NormPlace::kPre : NormPlace::kPost;
  config.embedding_norm = reader.BoolOr("embedding_layer_norm", !pre && !translates);
  if (pre && config.embedding_norm) {
    reader.Refuse("embedding_layer_norm", "false with norm_position pre");
  }
  config.activation = ReadLunaActivation(reader, "activation", translates ? "relu" : "gelu");
  config.positions =
      ReadLunaPositions(reader, "position_type", translates ? "sinusoidal" : "learned");
  CheckLunaSinusoids(reader, config.positions, config.width);
  config.gain = ReadLunaGain(reader);
  config.legacy_roles = reader.BoolOr("legacy_proj_roles", false);
  if (config.legacy_roles && !config.tied_kv) {
    reader.Refuse("legacy_proj_roles", "false where tie_kv is false");
  }
}

void ReadLraHead(JsonReader& reader, LunaConfig& config) {
  const std::string pooling = reader.ChoiceOr("pooling", "cls", {"cls", "mean", "proj_mean"});
  config.pooling = pooling == "cls"    ? LunaPooling::kCls
                   : pooling == "mean" ? LunaPooling::kMean
                                       : LunaPooling::kProjectedMean;
  const bool projected = config.pooling == LunaPooling::kProjectedMean;
  config.strip_class = reader.BoolOr("strip_cls_for_proj_pooling", projected);
  if (config.strip_class && !projected) {
    reader.Refuse("strip_cls_for_proj_pooling", "false unless pooling is proj_mean");
  }
  if (reader.IntOr("classifier_in_dim", config.features(), 1) != config.features()) {
    reader.Refuse("classifier_in_dim", absl::StrCat(config.features(), " for this head"));
  }
  const auto layers = reader.IntOr("classifier_layers", 1, 0, 64);
  const auto out = layers == 0 ? 0 : reader.Int("classifier_out_dim", 1, 1 << 20);
  config.hidden.assign(static_cast<size_t>(layers), static_cast<int>(out));
  config.hidden_activation = ReadLunaActivation(reader, "classifier_activation", "relu");
}

}  // namespace

void ReadLunaEncoder(JsonReader& reader, LunaConfig& config) {
  ReadSizes(reader, config);
  ReadLayers(reader, config);
}

absl::StatusOr<LunaConfig> ParseLunaConfig(const json& value, const CommonConfig& common,
                                           const std::string& origin) {
  JsonReader reader(value, origin);
  RefuseUnknownLunaKeys(reader);
  reader.ChoiceOr("model_type", "luna", {"luna"});
  LunaConfig config;
  config.architecture = common.architecture;
  ReadHead(reader, config);
  ReadLunaEncoder(reader, config);
  if (!reader.status().ok()) return reader.status();
  if (config.is_lra()) ReadLraHead(reader, config);
  config.tied_words = reader.BoolOr("tie_word_embeddings", true);
  if (config.task != EncoderHead::kMaskedLm) {
    config.labels = common.labels;
    config.problem_type = common.problem_type;
  }
  if (!reader.status().ok()) return reader.status();
  return config;
}

std::span<const std::string_view> LunaArchitectures() { return kArchitectures; }

}  // namespace longview::models
