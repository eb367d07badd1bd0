#include "models/roberta/config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/span/plan.h"
#include "models/config/json_reader.h"
#include "models/config/named_values.h"
#include "models/layers/activation_names.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, EncoderHead>, 12> kArchitectures = {{
    {"XLMRobertaModel", EncoderHead::kNone},
    {"XLMRobertaForSequenceClassification", EncoderHead::kSequenceClassification},
    {"XLMRobertaForTokenClassification", EncoderHead::kTokenClassification},
    {"XLMRobertaForQuestionAnswering", EncoderHead::kQuestionAnswering},
    {"XLMRobertaForMaskedLM", EncoderHead::kMaskedLm},
    {"XLMRobertaForMultipleChoice", EncoderHead::kMultipleChoice},
    {"RobertaModel", EncoderHead::kNone},
    {"RobertaForSequenceClassification", EncoderHead::kSequenceClassification},
    {"RobertaForTokenClassification", EncoderHead::kTokenClassification},
    {"RobertaForQuestionAnswering", EncoderHead::kQuestionAnswering},
    {"RobertaForMaskedLM", EncoderHead::kMaskedLm},
    {"RobertaForMultipleChoice", EncoderHead::kMultipleChoice},
}};

constexpr std::array<std::pair<std::string_view, EncoderHead>, 7> kBertArchitectures = {{
    {"BertModel", EncoderHead::kNone},
    {"BertForSequenceClassification", EncoderHead::kSequenceClassification},
    {"BertForTokenClassification", EncoderHead::kTokenClassification},
    {"BertForQuestionAnswering", EncoderHead::kQuestionAnswering},
    {"BertForMaskedLM", EncoderHead::kMaskedLm},
    {"BertForPreTraining", EncoderHead::kMaskedLm},
    {"BertForMultipleChoice", EncoderHead::kMultipleChoice},
}};

void ReadSizes(JsonReader& reader, TransformerConfig& config) {
  constexpr int64_t kLarge = 1 << 24;
  const auto read = [&](std::string_view key, int fallback, int64_t min, int64_t max) {
    return static_cast<int>(reader.IntOr(key, fallback, min, max));
  };
  config.vocab = read("vocab_size", 30522, 1, kLarge);
  config.width = read("hidden_size", 768, 1, 1 << 16);
  config.layers.resize(static_cast<size_t>(read("num_hidden_layers", 12, 1, 1024)));
  config.heads = read("num_attention_heads", 12, 1, 1024);
  config.intermediate = read("intermediate_size", 3072, 1, 1 << 20);
  config.positions = read("max_position_embeddings", 512, 2, kLarge);
  config.types = read("type_vocab_size", 2, 1, 1 << 16);
  config.norm_eps = static_cast<float>(reader.NumberOr("layer_norm_eps", 1e-12));
  if (!reader.status().ok()) return;
  if (config.width % config.heads != 0) {
    reader.Refuse("hidden_size", absl::StrCat("a multiple of num_attention_heads, ", config.heads));
  } else if (config.head_dim() > kernels::kMaxHeadDim) {
    reader.Refuse("num_attention_heads",
                  absl::StrCat("heads of at most ", kernels::kMaxHeadDim, " channels"));
  }
  if (!(config.norm_eps >= 0)) reader.Refuse("layer_norm_eps", "a number of at least 0");
}

void ReadIds(JsonReader& reader, int pad, TransformerConfig& config) {
  constexpr int64_t kLarge = 1 << 24;
  config.pad = static_cast<int>(reader.IntOr("pad_token_id", pad, 0, kLarge));
  if (config.pad >= config.vocab) {
    reader.Refuse("pad_token_id", absl::StrCat("an id below vocab_size, ", config.vocab));
  }
}

// All but sizes, ids and the number of tokens.
void ReadLayersAndHead(JsonReader& reader, const CommonConfig& common, TransformerConfig& config) {
  config.activation = ReadActivation(reader, "hidden_act");
  if (reader.Has("position_embedding_type")) {
    reader.Choice("position_embedding_type", {"absolute"});
  }
  for (const char* decoder : {"is_decoder", "add_cross_attention"}) {
    if (reader.BoolOr(decoder, false)) reader.Refuse(decoder, "false: this is an encoder");
  }
  config.tied = reader.BoolOr("tie_word_embeddings", true);
  const bool classifies = config.head == EncoderHead::kSequenceClassification;
  const bool labels = classifies || config.head == EncoderHead::kTokenClassification;
  if (labels) config.labels = common.labels;
  if (classifies) config.problem_type = common.problem_type;
}

}  // namespace

absl::StatusOr<TransformerConfig> ParseRobertaConfig(const json& value, const CommonConfig& common,
                                                     const std::string& origin) {
  JsonReader reader(value, origin);
  reader.Choice("model_type", {"xlm-roberta", "roberta"});
  TransformerConfig config;
  config.architecture = common.architecture;
  config.head = ReadNamed(reader, "architectures", config.architecture, kArchitectures);
  ReadSizes(reader, config);
  if (!reader.status().ok()) return reader.status();
  ReadIds(reader, 1, config);
  config.sep = static_cast<int>(reader.IntOr("eos_token_id", 2));
  config.behind_pad = true;
  config.max_tokens = config.positions - config.pad - 1;
  if (config.max_tokens < 1) {
    reader.Refuse("max_position_embeddings",
                  absl::StrCat("at least pad_token_id + 2, ", config.pad + 2));
  }
  ReadLayersAndHead(reader, common, config);
  // The masked LM's is the exact gelu whatever hidden_act says.
  if (config.head == EncoderHead::kSequenceClassification) {
    config.head_activation = Activation::kTanh;
  }
  if (!reader.status().ok()) return reader.status();
  return config;
}

absl::StatusOr<TransformerConfig> ParseBertConfig(const json& value, const CommonConfig& common,
                                                  const std::string& origin) {
  JsonReader reader(value, origin);
  reader.Choice("model_type", {"bert"});
  TransformerConfig config;
  config.architecture = common.architecture;
  config.head = ReadNamed(reader, "architectures", config.architecture, kBertArchitectures);
  ReadSizes(reader, config);
  if (!reader.status().ok()) return reader.status();
  ReadIds(reader, 0, config);
  config.sep = common.sep_token_id.value_or(-1);
  config.max_tokens = config.positions;
  ReadLayersAndHead(reader, common, config);
  config.head_activation = config.activation;
  if (!reader.status().ok()) return reader.status();
  return config;
}

std::span<const std::string_view> BertArchitectures() {
  static const auto kNames = NamesOf(kBertArchitectures);
  return kNames;
}

std::span<const std::string_view> RobertaArchitectures() {
  static const auto kNames = NamesOf(kArchitectures);
  return kNames;
}

}  // namespace longview::models
