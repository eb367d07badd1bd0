#include "models/led/config.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "kernels/span/plan.h"
#include "models/config/json_reader.h"
#include "models/layers/activation_names.h"
#include "nlohmann/json.hpp"

namespace longview::models {
namespace {

constexpr int64_t kLarge = 1 << 24;
// LEDConfig's LayerNorms have this one, whatever a file says.
constexpr float kNormEps = 1e-5f;

// A key or its alias; both may be there.
int ReadSize(JsonReader& reader, std::string_view key, std::string_view alias, int fallback,
             int64_t max) {
  const std::string_view name = !reader.Has(key) && reader.Has(alias) ? alias : key;
  return static_cast<int>(reader.IntOr(name, fallback, 1, max));
}

void CheckHeads(JsonReader& reader, int width, int heads, std::string_view key) {
  if (!reader.status().ok()) return;
  if (width % heads != 0)
    reader.Refuse("d_model", absl::StrCat("a multiple of ", std::string(key)));
  if (width / heads > kernels::kMaxHeadDim) {
    reader.Refuse(key, absl::StrCat("heads of at most ", kernels::kMaxHeadDim, " channels"));
  }
}

void ReadSizes(JsonReader& reader, LedConfig& config) {
  LongformerConfig& encoder = config.encoder;
  StackConfig& decoder = config.decoder;
  encoder.vocab = decoder.vocab = static_cast<int>(reader.IntOr("vocab_size", 50265, 1, kLarge));
  encoder.width = decoder.width = ReadSize(reader, "d_model", "hidden_size", 1024, 1 << 16);
  encoder.layers = ReadSize(reader, "encoder_layers", "num_hidden_layers", 12, 1024);
  encoder.heads = ReadSize(reader, "encoder_attention_heads", "num_attention_heads", 16, 1024);
  encoder.intermediate = static_cast<int>(reader.IntOr("encoder_ffn_dim", 4096, 1, 1 << 20));
  encoder.positions =
      static_cast<int>(reader.IntOr("max_encoder_position_embeddings", 16384, 1, kLarge));
  encoder.norm_eps = kNormEps;
  encoder.dilation.assign(static_cast<size_t>(encoder.layers), {});
  decoder.family = "led";
  decoder.encoder = true;
  decoder.windows.resize(static_cast<size_t>(reader.IntOr("decoder_layers", 12, 1, 1024)));
  decoder.heads = static_cast<int>(reader.IntOr("decoder_attention_heads", 16, 1, 1024));
  decoder.intermediate = static_cast<int>(reader.IntOr("decoder_ffn_dim", 4096, 1, 1 << 20));
  config.max_output =
      static_cast<int>(reader.IntOr("max_decoder_position_embeddings", 1024, 1, kLarge));
  CheckHeads(reader, encoder.width, encoder.heads, "encoder_attention_heads");
  CheckHeads(reader, decoder.width, decoder.heads, "decoder_attention_heads");
}

// Reads the tokens that an output begins and ends with, generation_config.json first, as
// HuggingFace's generate does.
void ReadTokens(const ModelDirectory& directory, JsonReader& reader, LedConfig& config) {
  const int64_t last = config.decoder.vocab - 1;
  const auto read = [&](std::string_view key, int fallback) {
    return static_cast<int32_t>(reader.IntOr(key, fallback, 0, last));
  };
  config.pad = config.encoder.pad = read("pad_token_id", 1);
  config.decoder_start = read("decoder_start_token_id", 2);
  config.eos = directory.common.eos_token_ids;
  if (config.eos.empty()) config.eos = {2};
  for (const int32_t id : config.eos) {
    if (id < 0 || id > last) {
      reader.Refuse("eos_token_id", absl::StrCat("ids below vocab_size, ", last + 1));
    }
  }
  config.encoder.sep = config.eos.front();
  const std::string path =
      (std::filesystem::path(directory.path) / "generation_config.json").string();
  const absl::StatusOr<nlohmann::json> file = ReadJsonFile(path);
  if (!file.ok()) {
    if (!absl::IsNotFound(file.status())) reader.Merge(file.status());
    return;
  }
  JsonReader generation(*file, path);
  config.decoder_start = static_cast<int32_t>(
      generation.IntOr("decoder_start_token_id", config.decoder_start, 0, last));
  reader.Merge(generation.status());
}

}  // namespace

absl::StatusOr<LedConfig> ParseLedConfig(const ModelDirectory& directory) {
  JsonReader reader(directory.config, directory.config_path);
  LedConfig config;
  reader.Choice("model_type", {"led"});
  config.encoder.architecture = directory.common.architecture;
  ReadSizes(reader, config);
  if (!reader.status().ok()) return reader.status();
  ReadWindows(reader, "encoder_layers", config.encoder);
  config.encoder.activation = config.decoder.activation =
      ReadActivation(reader, "activation_function");
  config.tied = reader.BoolOr("tie_word_embeddings", true);
  ReadTokens(directory, reader, config);
  if (!reader.status().ok()) return reader.status();
  return config;
}

}  // namespace longview::models
