#include "models/modernbert/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/span/plan.h"
#include "models/config/json_reader.h"
#include "models/config/named_values.h"
#include "models/layers/activation_names.h"

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

constexpr double kFullTheta = 160000, kSlidingTheta = 10000;

// Attention's factor of YaRN: given, from two mscales, or from the factor.
double AttentionFactor(JsonReader& reader, double factor) {
  if (reader.Has("attention_factor")) return reader.Number("attention_factor");
  const auto scale = [&](double mscale) {
    return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1;
  };
  const double mscale = reader.NumberOr("mscale", 0), all = reader.NumberOr("mscale_all_dim", 0);
  return mscale != 0 && all != 0 ? scale(mscale) / scale(all) : scale(1);
}

RotaryConfig ReadSet(JsonReader& reader, double theta, int max_positions) {
  RotaryConfig rotary;
  rotary.theta = reader.NumberOr("rope_theta", theta);
  if (!(rotary.theta > 1)) reader.Refuse("rope_theta", "a number above 1");
  if (reader.Has("type") && !reader.Has("rope_type")) {
    reader.Refuse("type", "rope_type: transformers does not read the older name here");
  }
  const std::string type = reader.ChoiceOr("rope_type", "default", {"default", "linear", "yarn"});
  if (type == "default") return rotary;
  rotary.factor = reader.Number("factor");
  if (!(rotary.factor > 0)) reader.Refuse("factor", "a number above 0");
  rotary.type = RotaryConfig::Type::kLinear;
  if (type == "linear") return rotary;
  rotary.type = RotaryConfig::Type::kYarn;
  rotary.original_positions =
      static_cast<double>(reader.IntOr("original_max_position_embeddings", max_positions, 1));
  rotary.beta_fast = reader.NumberOr("beta_fast", 32);
  rotary.beta_slow = reader.NumberOr("beta_slow", 1);
  if (!(rotary.beta_fast > 0)) reader.Refuse("beta_fast", "a number above 0");
  if (!(rotary.beta_slow > 0)) reader.Refuse("beta_slow", "a number above 0");
  rotary.attention_factor = AttentionFactor(reader, rotary.factor);
  return rotary;
}

// rope_parameters.<type>, with what the flat rope_scaling of release 4 says on top.
RotaryConfig ReadType(JsonReader& reader, const char* type, double theta,
                      const TransformerConfig& config) {
  json set = json::object();
  if (const json* nested = reader.Find("rope_parameters")) {
    const auto own = nested->find(type);
    if (own != nested->end() && !own->is_object()) {
      reader.Refuse("rope_parameters", absl::StrCat("an object at ", type));
      return {};
    }
    if (own != nested->end()) set = *own;
  }
  if (const json* scaling = reader.Find("rope_scaling")) {
    if (!scaling->is_object() || (scaling->contains("type") && !scaling->contains("rope_type"))) {
      reader.Refuse("rope_scaling", "an object with rope_type, the name that transformers reads");
      return {};
    }
    set.update(*scaling);
  }
  JsonReader own(set, absl::StrCat(reader.origin(), ": rope_parameters of ", type));
  const RotaryConfig rotary = ReadSet(own, theta, config.max_tokens);
  reader.Merge(own.status());
  return rotary;
}

// One set for all layers, as other models have it, is not read by transformers.
void RefuseFlat(JsonReader& reader) {
  const json* nested = reader.Find("rope_parameters");
  if (nested == nullptr) return;
  bool by_type = nested->is_object();
  for (auto it = nested->begin(); by_type && it != nested->end(); ++it) {
    by_type = it.key() == "full_attention" || it.key() == "sliding_attention";
  }
  if (by_type) return;
  reader.Refuse("rope_parameters", "an object with full_attention and sliding_attention");
}

// Gives `rotary` to the layers of its kind.
void Assign(bool full, const RotaryConfig& rotary, TransformerConfig& config) {
  const auto at = std::find(config.rotary.begin(), config.rotary.end(), rotary);
  const auto index = static_cast<int>(at - config.rotary.begin());
  if (at == config.rotary.end()) config.rotary.push_back(rotary);
  for (TransformerConfig::Layer& layer : config.layers) {
    if ((layer.window < 0) == full) layer.rotary = index;
  }
}

// The rotary positions: one set of parameters for layers that see their whole document and one for
// those with a window, in the keys of release 4 or 5. Fills config.rotary and which of it each
// layer has. REQUIRES: sizes and layers were read.
void ReadRotary(JsonReader& reader, TransformerConfig& config) {
  RefuseFlat(reader);
  double full_theta = reader.NumberOr("global_rope_theta", kFullTheta);
  // A null theta of the windows is the other one in release 4.
  const double sliding_theta = reader.IsNull("local_rope_theta") ? full_theta : kSlidingTheta;
  for (const bool full : {true, false}) {
    const bool used = std::any_of(config.layers.begin(), config.layers.end(),
                                  [&](const auto& layer) { return (layer.window < 0) == full; });
    if (!used || !reader.status().ok()) continue;
    const RotaryConfig rotary =
        full ? ReadType(reader, "full_attention", full_theta, config)
             : ReadType(reader, "sliding_attention",
                        reader.NumberOr("local_rope_theta", sliding_theta), config);
    if (full) full_theta = rotary.theta;
    Assign(full, rotary, config);
  }
  if (reader.Has("rope_theta") && reader.Number("rope_theta") != full_theta) {
    reader.Refuse("rope_theta", absl::StrCat("the theta of full layers, ", full_theta,
                                             ": releases of transformers disagree on this key"));
  }
}

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
  reader.Refuse("layer_types", absl::StrCat("full_attention or sliding_attention for each of the ",
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
