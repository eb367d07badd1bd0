#include "models/longformer/config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/config/named_values.h"
#include "models/layers/activation_names.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, EncoderHead>, 6> kArchitectures = {{
    {"LongformerModel", EncoderHead::kNone},
    {"LongformerForSequenceClassification", EncoderHead::kSequenceClassification},
    {"LongformerForTokenClassification", EncoderHead::kTokenClassification},
    {"LongformerForQuestionAnswering", EncoderHead::kQuestionAnswering},
    {"LongformerForMaskedLM", EncoderHead::kMaskedLm},
    {"LongformerForMultipleChoice", EncoderHead::kMultipleChoice},
}};

// allenai's own files have the same keys with one-sided windows: taking them for HuggingFace's
// would halve every window silently.
void RefuseAllenai(JsonReader& reader) {
  constexpr std::array<std::string_view, 4> kModes = {"tvm", "sliding_chunks", "n2",
                                                      "sliding_chunks_no_overlap"};
  const json* mode = reader.Find("attention_mode");
  const json* type = reader.Find("model_type");
  if (mode == nullptr || !mode->is_string()) return;
  const auto& name = mode->get_ref<const std::string&>();
  const bool allenai = std::find(kModes.begin(), kModes.end(), name) != kModes.end();
  const bool ours = type != nullptr && (*type == "longformer" || *type == "led");
  if (allenai && !ours) {
    reader.Refuse("attention_mode",
                  "a HuggingFace config (model_type \"longformer\"); this one is allenai's own, "
                  "whose attention_window is one-sided");
  }
}

void ReadDilation(JsonReader& reader, LongformerConfig& config) {
  constexpr std::string_view kKey = "attention_dilation";
  config.dilation.assign(config.layers, {});
  const json* value = reader.Find(kKey);
  if (value == nullptr) return;
  const std::string expected = absl::StrCat("a list of ", config.layers,
                                            " entries (num_hidden_layers), each an integer of "
                                            "at least 1 or a list of ",
                                            config.heads, " (num_attention_heads)");
  const auto good = [](const json& d) { return d.is_number_integer() && d >= 1 && d <= (1 << 20); };
  if (!value->is_array() || static_cast<int>(value->size()) != config.layers) {
    return reader.Refuse(kKey, expected);
  }
  for (int layer = 0; layer < config.layers; ++layer) {
    const json& entry = (*value)[layer];
    if (good(entry)) {
      if (entry != 1) config.dilation[layer].assign(config.heads, entry.get<int>());
      continue;
    }
    if (!entry.is_array() || static_cast<int>(entry.size()) != config.heads ||
        !std::all_of(entry.begin(), entry.end(), good)) {
      return reader.Refuse(kKey, expected);
    }
    config.dilation[layer] = entry.get<std::vector<int>>();
  }
}

void ReadSizes(JsonReader& reader, LongformerConfig& config) {
  constexpr int64_t kLarge = 1 << 24;
  const auto read = [&](std::string_view key, int fallback, int64_t min, int64_t max) {
    return static_cast<int>(reader.IntOr(key, fallback, min, max));
  };
  config.vocab = read("vocab_size", 30522, 1, kLarge);
  config.width = read("hidden_size", 768, 1, 1 << 16);
  config.layers = read("num_hidden_layers", 12, 1, 1024);
  config.heads = read("num_attention_heads", 12, 1, 1024);
  config.intermediate = read("intermediate_size", 3072, 1, 1 << 20);
  config.positions = read("max_position_embeddings", 512, 2, kLarge);
  config.types = read("type_vocab_size", 2, 1, 1 << 16);
  config.pad = read("pad_token_id", 1, 0, kLarge);
  config.sep = read("sep_token_id", 2, 0, kLarge);
  config.norm_eps = static_cast<float>(reader.NumberOr("layer_norm_eps", 1e-12));
  if (!reader.status().ok()) return;
  if (config.width % config.heads != 0) {
    reader.Refuse("hidden_size", absl::StrCat("a multiple of num_attention_heads, ", config.heads));
  }
  if (config.width / config.heads > 128) {
    reader.Refuse("num_attention_heads", "heads of at most 128 channels");
  }
  if (config.pad >= config.vocab) {
    reader.Refuse("pad_token_id", absl::StrCat("an id below vocab_size, ", config.vocab));
  }
  if (config.max_tokens() < 1) {
    reader.Refuse("max_position_embeddings",
                  absl::StrCat("at least pad_token_id + 2, ", config.pad + 2));
  }
  if (!(config.norm_eps >= 0)) reader.Refuse("layer_norm_eps", "a number of at least 0");
}

}  // namespace

void ReadWindows(JsonReader& reader, std::string_view layers_key, LongformerConfig& config) {
  constexpr std::string_view kKey = "attention_window";
  constexpr int64_t kLargest = 1 << 24;
  std::vector<int64_t> windows;
  const json* value = reader.Find(kKey);
  if (value != nullptr && value->is_array()) {
    windows = reader.IntList(kKey, 1, kLargest);
    if (reader.status().ok() && static_cast<int>(windows.size()) != config.layers) {
      reader.Refuse(kKey, absl::StrCat("one window or a list of ", config.layers, " (",
                                       std::string(layers_key), ")"));
    }
  } else {
    windows.assign(config.layers, reader.IntOr(kKey, 512, 1, kLargest));
  }
  for (const int64_t window : windows) {
    if (window % 2 != 0) reader.Refuse(kKey, "even windows");
    config.window.push_back(static_cast<int>(window / 2));
  }
}

absl::StatusOr<LongformerConfig> ParseLongformerConfig(const json& value,
                                                       const CommonConfig& common,
                                                       const std::string& origin) {
  JsonReader reader(value, origin);
  LongformerConfig config;
  RefuseAllenai(reader);
  if (reader.status().ok()) reader.Choice("model_type", {"longformer"});
  config.architecture = common.architecture;
  config.head = ReadNamed(reader, "architectures", config.architecture, kArchitectures);
  ReadSizes(reader, config);
  if (!reader.status().ok()) return reader.status();
  ReadWindows(reader, "num_hidden_layers", config);
  ReadDilation(reader, config);
  config.activation = ReadActivation(reader, "hidden_act");
  if (reader.Has("position_embedding_type")) {
    reader.Choice("position_embedding_type", {"absolute"});
  }
  config.tied = reader.BoolOr("tie_word_embeddings", true);
  const bool classifies = config.head == EncoderHead::kSequenceClassification ||
                          config.head == EncoderHead::kTokenClassification;
  if (classifies) config.labels = common.labels;
  if (config.head == EncoderHead::kSequenceClassification) {
    config.problem_type = common.problem_type;
  }
  if (!reader.status().ok()) return reader.status();
  return config;
}

std::span<const std::string_view> LongformerArchitectures() {
  static const auto kNames = NamesOf(kArchitectures);
  return kNames;
}

}  // namespace longview::models
