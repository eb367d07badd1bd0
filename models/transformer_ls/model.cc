#include "models/transformer_ls/model.h"

#include <string>
#include <utility>

#include "models/dense/compute_choice.h"
#include "models/generation/generator_model.h"
#include "models/generation/model_defaults.h"
#include "models/text/byte_codec.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/decoder.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {
namespace {

// Positions are relative and have no table, so only memory ends a text; longview.json may say
// otherwise.
constexpr int kMaxTokens = 1 << 17;

// What both functions need, checked.
struct Settings {
  LsLmConfig config;
  std::unique_ptr<TextCodec> codec;
  int max_tokens = 0;
};

absl::StatusOr<Settings> ReadSettings(const ModelDirectory& directory) {
  absl::StatusOr<LsLmConfig> config =
      ParseLsLmConfig(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config.status();
  const auto tokenizer = directory.config.find("tokenizer");
  const bool described = tokenizer != directory.config.end() && !tokenizer->is_null();
  auto codec = ByteCodec::Create(described ? &*tokenizer : nullptr, directory.path, config->vocab,
                                 directory.config_path);
  if (!codec.ok()) return codec.status();
  return Settings{*std::move(config), *std::move(codec),
                  directory.serving.max_tokens.value_or(kMaxTokens)};
}

ModelInfo InfoOf(const ModelDirectory& directory, const Settings& settings) {
  ModelInfo info;
  info.family = "transformer_ls";
  info.architecture = directory.common.architecture;
  DescribeGenerator(settings.config.vocab, settings.max_tokens, settings.config.granule(), true,
                    info);
  return info;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeTransformerLs(const ModelDirectory& directory) {
  const absl::StatusOr<Settings> settings = ReadSettings(directory);
  if (!settings.ok()) return settings.status();
  const absl::StatusOr<double> parameters =
      CheckLsLmWeights(settings->config, directory.checkpoint, directory.path);
  if (!parameters.ok()) return parameters.status();
  ModelInfo info = InfoOf(directory, *settings);
  info.parameters = *parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadTransformerLs(ModelDirectory directory,
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
  parts.traits.pad = directory.common.pad_token_id;
  const std::string origin = directory.path;
  const bool warmup = directory.serving.warmup;
  auto decoder = LsDecoder::Create(settings->config, std::move(directory.checkpoint), origin,
                                   choice->compute, settings->max_tokens, options.cache_bytes);
  if (!decoder.ok()) return decoder.status();
  (*decoder)->set_warms_up(warmup);
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
