#include "models/luna_decoder/config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"

namespace longview::models {
namespace {

constexpr std::array<std::string_view, 2> kArchitectures = {"LunaForCausalLM",
                                                            "LunaForConditionalGeneration"};

void ReadSizes(JsonReader& reader, LunaDecoderConfig& config) {
  const auto read = [&](std::string_view key, int64_t min, int64_t max) {
    return static_cast<int>(reader.Int(key, min, max));
  };
  config.vocab = read("vocab_size", 2, 1 << 24);
  config.width = read("hidden_size", 1, 1 << 16);
  config.intermediate = read("ffn_size", 1, 1 << 20);
  config.layers = read("num_layers", 1, 1024);
  config.heads = read("num_heads", 1, 1024);
  config.projected = read("proj_len", 1, 1 << 16);
  config.max_tokens = read("max_positions", 1, 1 << 24);
  config.pad = static_cast<int>(reader.IntOr("pad_token_id", 1, 0, 1 << 24));
  config.norm_eps = static_cast<float>(reader.NumberOr("layer_norm_eps", 1e-5));
  config.embed_scale = static_cast<float>(reader.NumberOr("embed_scale", 1));
  if (!reader.status().ok()) return;
  CheckLunaHeads(reader, "num_heads", config.heads, config.width);
  if (config.pad >= config.vocab) reader.Refuse("pad_token_id", "an id below vocab_size");
  if (!(config.norm_eps >= 0)) reader.Refuse("layer_norm_eps", "a number of at least 0");
}

void ReadLayers(JsonReader& reader, LunaDecoderConfig& config) {
  config.tied_kv = reader.BoolOr("tie_kv", true);
  const bool pre = reader.ChoiceOr("norm_position", "post", {"post", "pre"}) == "pre";
  config.norms = pre ? NormPlace::kPre : NormPlace::kPost;
  config.embedding_norm = reader.BoolOr("embedding_layer_norm", false);
  if (pre && config.embedding_norm) {
    reader.Refuse("embedding_layer_norm", "false with norm_position pre");
  }
  config.activation = ReadLunaActivation(reader, "activation", "relu");
  config.positions = ReadLunaPositions(reader, "position_type", "sinusoidal");
  CheckLunaSinusoids(reader, config.positions, config.width);
  config.gain = ReadLunaGain(reader);
  const std::string phi =
      reader.ChoiceOr("causal_activation", "softplus_ln2", {"softplus_ln2", "softplus", "elu1"});
  config.phi = phi == "elu1"       ? kernels::OuterActivation::kElu1
               : phi == "softplus" ? kernels::OuterActivation::kSoftplus
                                   : kernels::OuterActivation::kSoftplusLn2;
  config.legacy_roles = reader.BoolOr("legacy_proj_roles", false);
  if (config.legacy_roles && !config.tied_kv) {
    reader.Refuse("legacy_proj_roles", "false where tie_kv is false");
  }
  config.tied_words = reader.BoolOr("tie_word_embeddings", true);
  if (reader.BoolOr("tie_layer_weights", false)) {
    reader.Refuse("tie_layer_weights", "false or absent in a model with a decoder");
  }
}

bool ReadPreNorm(JsonReader& reader, bool encoder) {
  return reader.ChoiceOr("decoder_norm_position", encoder ? "pre" : "post", {"post", "pre"}) ==
         "pre";
}

// Keys of the decoder that differ from the encoder's, and what both share.
void ReadTranslation(JsonReader& reader, LunaDecoderConfig& config) {
  LunaConfig encoder;
  encoder.head = LunaHead::kNone;
  encoder.task = EncoderHead::kNone;
  encoder.architecture = kArchitectures[1];
  ReadLunaEncoder(reader, encoder);
  if (!reader.status().ok()) return;
  const auto read = [&](std::string_view key, int fallback, int64_t max) {
    return static_cast<int>(reader.IntOr(key, fallback, 1, max));
  };
  config.vocab = read("decoder_vocab_size", encoder.vocab, 1 << 24);
  config.layers = read("decoder_layers", encoder.layers, 1024);
  config.intermediate = read("decoder_ffn_size", encoder.intermediate, 1 << 20);
  config.heads = read("decoder_heads", encoder.heads, 1024);
  config.cross_pack_heads = read("decoder_proj_heads", encoder.pack_heads, 1024);
  config.max_tokens = read("decoder_max_positions", encoder.max_tokens, 1 << 24);
  config.start = static_cast<int>(reader.IntOr("decoder_start_token_id", 2));
  config.norms =
      ReadPreNorm(reader, encoder.norms == NormPlace::kPre) ? NormPlace::kPre : NormPlace::kPost;
  const char* positions = encoder.positions == LunaPositions::kLearned      ? "learned"
                          : encoder.positions == LunaPositions::kSinusoidal ? "sinusoidal"
                                                                            : "none";
  config.positions = ReadLunaPositions(reader, "decoder_position_type", positions);
  config.shared_words = reader.BoolOr("share_all_embeddings", false);
  config.tied_words =
      reader.BoolOr("share_decoder_input_output_embed", false) || config.shared_words;
  encoder.tied_words = config.shared_words;
  if (!reader.status().ok()) return;
  CheckLunaHeads(reader, "decoder_heads", config.heads, config.width);
  CheckLunaHeads(reader, "decoder_proj_heads", config.cross_pack_heads, config.width);
  CheckLunaSinusoids(reader, config.positions, config.width);
  if (config.norms == NormPlace::kPre && config.embedding_norm) {
    reader.Refuse("embedding_layer_norm", "false with decoder_norm_position pre");
  }
  config.output_width = read("decoder_output_dim", config.width, 1 << 16);
  if (config.tied_words && config.output_width != config.width) {
    reader.Refuse("decoder_output_dim",
                  absl::StrCat(config.width, ", hidden_size, where the output is the embedding"));
  }
  if (config.shared_words && config.vocab != encoder.vocab) {
    reader.Refuse("decoder_vocab_size",
                  absl::StrCat(encoder.vocab, ", vocab_size, with share_all_embeddings"));
  }
  if (config.start >= config.vocab) {
    reader.Refuse("decoder_start_token_id", "an id below decoder_vocab_size");
  }
  config.encoder = std::move(encoder);
}

void CheckIds(const CommonConfig& common, JsonReader& reader, const LunaDecoderConfig& config) {
  const auto good = [&](int32_t id) { return id >= 0 && id < config.vocab; };
  const std::string expected = absl::StrCat("ids below vocab_size, ", config.vocab);
  if (common.bos_token_id && !good(*common.bos_token_id)) reader.Refuse("bos_token_id", expected);
  if (!std::all_of(config.ends.begin(), config.ends.end(), good)) {
    reader.Refuse("eos_token_id", expected);
  }
}

}  // namespace

absl::StatusOr<LunaDecoderConfig> ParseLunaDecoderConfig(const nlohmann::json& value,
                                                         const CommonConfig& common,
                                                         const std::string& origin) {
  JsonReader reader(value, origin);
  RefuseUnknownLunaKeys(reader);
  reader.ChoiceOr("model_type", "luna", {"luna"});
  const bool translates = common.architecture == kArchitectures[1];
  const char* head = translates ? "translation" : "causal_lm";
  reader.ChoiceOr("head", head, {head});
  LunaDecoderConfig config;
  ReadSizes(reader, config);
  ReadLayers(reader, config);
  config.output_width = config.width;
  if (value.contains("eos_token_id")) config.ends = common.eos_token_ids;
  if (translates && reader.status().ok()) ReadTranslation(reader, config);
  CheckIds(common, reader, config);
  if (!reader.status().ok()) return reader.status();
  return config;
}

std::span<const std::string_view> LunaDecoderArchitectures() { return kArchitectures; }

}  // namespace longview::models
