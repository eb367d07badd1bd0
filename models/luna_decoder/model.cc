#include "models/luna_decoder/model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "models/dense/compute_choice.h"
#include "models/generation/generator_model.h"
#include "models/generation/model_defaults.h"
#include "models/luna_decoder/decoder.h"
#include "models/text/dictionary_codec.h"

namespace longview::models {
namespace {

// What both functions need, checked.
struct Settings {
  LunaDecoderConfig config;
  std::unique_ptr<TextCodec> codec;  // Null without dict.txt.
  int max_tokens = 0;
};

absl::StatusOr<Settings> ReadSettings(const ModelDirectory& directory) {
  absl::StatusOr<LunaDecoderConfig> config =
      ParseLunaDecoderConfig(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config.status();
  auto codec = DictionaryCodec::Read(directory.path, "dict.txt", config->vocab);
  if (!codec.ok()) return codec.status();
  const int max_tokens =
      std::min(config->max_tokens, directory.serving.max_tokens.value_or(config->max_tokens));
  return Settings{*std::move(config), *std::move(codec), max_tokens};
}

ModelInfo InfoOf(const ModelDirectory& directory, const Settings& settings) {
  ModelInfo info;
  info.family = "luna";
  info.architecture = directory.common.architecture;
  DescribeGenerator(settings.config.vocab, settings.max_tokens, LunaDecoder::kGranule,
                    settings.codec != nullptr, info);
  return info;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLunaLm(const ModelDirectory& directory) {
  const absl::StatusOr<Settings> settings = ReadSettings(directory);
  if (!settings.ok()) return settings.status();
  const absl::StatusOr<LunaDecoderWeights> weights =
      LoadLunaDecoderWeights(settings->config, directory.checkpoint, directory.path, std::nullopt);
  if (!weights.ok()) return weights.status();
  ModelInfo info = InfoOf(directory, *settings);
  info.parameters = weights->parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadLunaLm(ModelDirectory directory,
                                                  const LoadOptions& options) {
  absl::StatusOr<Settings> settings = ReadSettings(directory);
  if (!settings.ok()) return settings.status();
  absl::StatusOr<ComputeChoice> choice = ChooseCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  absl::StatusOr<GenerationOptions> defaults = ReadGenerationDefaults(directory);
  if (!defaults.ok()) return defaults.status();
  GeneratorParts parts;
  parts.info = InfoOf(directory, *settings);
  parts.traits.defaults = *std::move(defaults);
  parts.traits.bos = directory.common.bos_token_id;
  parts.traits.eos = directory.common.eos_token_ids;
  parts.traits.pad = settings->config.pad;
  auto decoder =
      LunaDecoder::Create(settings->config, std::move(directory.checkpoint), directory.path,
                          choice->compute, settings->max_tokens, options.cache_bytes);
  if (!decoder.ok()) return decoder.status();
  (*decoder)->set_warms_up(directory.serving.warmup);
  parts.info.notes = std::move(choice->notes);
  parts.info.dtype = choice->compute == Compute::kFp32 ? "fp32" : "bf16";
  parts.info.device = "cpu";
  parts.info.parameters = (*decoder)->weights().parameters;
  parts.info.memory_bytes = (*decoder)->weights().memory_bytes;
  parts.decoder = *std::move(decoder);
  parts.codec = std::move(settings->codec);
  return MakeGeneratorModel(std::move(parts));
}

}  // namespace longview::models
