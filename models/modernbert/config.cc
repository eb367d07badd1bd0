#include "models/modernbert/config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/span/plan.h"
#include "models/config/activation_names.h"
#include "models/config/json_reader.h"
#include "models/config/named_values.h"
#include "models/modernbert/rotary_keys.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, EncoderHead>, 6> kArchitectures = {{
    {"ModernBertModel", EncoderHead::kNone},
    {"ModernBertForSequenceClassification", EncoderHead::kSequenceClassification},
    {"ModernBertForTokenClassification", EncoderHead::kTokenClassification},
    {"ModernBertForQuestionAnswering", EncoderHead::kQuestionAnswering},
    {"ModernBertForMaskedLM", EncoderHead::kMaskedLm},
    {"ModernBertForMultipleChoice", EncoderHead::kMultipleChoice},
}};

constexpr int64_t kLarge = 1 << 24;

void ReadSizes(JsonReader& reader, TransformerConfig& config) {
  const auto read = [&](std::string_view key, int fallback, int64_t max) {
    return static_cast<int>(reader.IntOr(key, fallback, 1, max));
  };
  config.vocab = read("vocab_size", 50368, kLarge);
  config.width = read("hidden_size", 768, 1 << 16);
  config.heads = read("num_attention_heads", 12, 1024);
  config.intermediate = read("intermediate_size", 1152, 1 << 20);
  config.layers.resize(static_cast<size_t>(read("num_hidden_layers", 22, 1024)));
  config.max_tokens = read("max_position_embeddings", 8192, kLarge);
  config.norm_eps = static_cast<float>(reader.NumberOr("norm_eps", 1e-5));
  if (!reader.status().ok()) return;
  if (config.width % (2 * config.heads) != 0) {
    reader.Refuse("hidden_size", absl::StrCat("a multiple of 2 * num_attention_heads, ",
                                              2 * config.heads, ": rotary positions take pairs"));
  } else if (config.head_dim() > kernels::kMaxHeadDim) {
    reader.Refuse("num_attention_heads",
                  absl::StrCat("heads of at most ", kernels::kMaxHeadDim, " channels"));
  }
  if (!(config.norm_eps >= 0)) reader.Refuse("norm_eps", "a number of at least 0");
}

// local_attention is the whole width, sliding_window what release 5 calls its half.
int ReadWindow(JsonReader& reader) {
  const auto half = static_cast<int>(reader.IntOr("local_attention", 128, 0, kLarge) / 2);
  if (!reader.Has("sliding_window")) return half;
  const auto sliding = static_cast<int>(reader.Int("sliding_window", 0, kLarge));
  if (reader.Has("local_attention") && sliding != half) {
    reader.Refuse("sliding_window",
                  absl::StrCat("half of local_attention, ", half, ", or one of the two alone"));
  }
  return sliding;
}

void ReadLayers(JsonReader& reader, TransformerConfig& config) {
  const TransformerConfig::Layer full = {-1}, sliding = {ReadWindow(reader)};
  if (!reader.Has("layer_types")) {
    const int64_t every = reader.IntOr("global_attn_every_n_layers", 3, 1, kLarge);
    if (!reader.status().ok()) return;
    for (size_t i = 0; i < config.layers.size(); ++i) {
      config.layers[i] = static_cast<int64_t>(i) % every == 0 ? full : sliding;
    }
    return;
  }
  const std::vector<std::string> types = reader.StringList("layer_types");
  bool good = types.size() == config.layers.size();
  for (size_t i = 0; good && i < types.size(); ++i) {
    good = types[i] == "full_attention" || types[i] == "sliding_attention";
    config.layers[i] = types[i] == "full_attention" ? full : sliding;
  }
  if (good) return;
  reader.Refuse("layer_types",
                absl::StrCat("full_attention or sliding_attention for each of the ",
                             config.layers.size(), " layers (num_hidden_layers)"));
}

}  // namespace

absl::StatusOr<TransformerConfig> ParseModernBertConfig(const json& value,
                                                        const CommonConfig& common,
                                                        const std::string& origin,
                                                        std::optional<int> max_tokens) {
  JsonReader reader(value, origin);
  reader.Choice("model_type", {"modernbert"});
  TransformerConfig config;
  config.architecture = common.architecture;
  config.head = ReadNamed(reader, "architectures", config.architecture, kArchitectures);
  ReadSizes(reader, config);
  if (!reader.status().ok()) return reader.status();
  ReadLayers(reader, config);
  ReadRotary(reader, config);
  config.max_tokens = max_tokens.value_or(config.max_tokens);
  config.norms = NormPlace::kPre;
  config.activation = ReadActivation(reader, "hidden_activation");
  config.head_activation = ReadActivation(reader, "classifier_activation");
  config.pools_mean = reader.ChoiceOr("classifier_pooling", "cls", {"cls", "mean"}) == "mean";
  config.tied = reader.BoolOr("tie_word_embeddings", true);
  config.norm_bias = reader.BoolOr("norm_bias", false);
  config.attention_bias = reader.BoolOr("attention_bias", false);
  config.mlp_bias = reader.BoolOr("mlp_bias", false);
  config.head_bias = reader.BoolOr("classifier_bias", false);
  config.decoder_bias = reader.BoolOr("decoder_bias", true);
  config.pad = common.pad_token_id.value_or(-1);
  config.sep = common.sep_token_id.value_or(-1);
  const bool classifies = config.head == EncoderHead::kSequenceClassification;
  const bool labels = classifies || config.head == EncoderHead::kTokenClassification;
  if (labels) config.labels = common.labels;
  if (classifies) config.problem_type = common.problem_type;
  if (!reader.status().ok()) return reader.status();
  return config;
}

std::span<const std::string_view> ModernBertArchitectures() {
  static const auto kNames = NamesOf(kArchitectures);
  return kNames;
}

}  // namespace longview::models
