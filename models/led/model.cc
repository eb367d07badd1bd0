#include "models/led/model.h"

#include <utility>

#include "models/dense/compute_choice.h"
#include "models/encoder/model.h"
#include "models/generation/generator_model.h"
#include "models/generation/model_defaults.h"
#include "models/led/decoder.h"
#include "models/led/rules.h"
#include "models/led/weights.h"
#include "models/text/tokenizer_codec.h"

namespace longview::models {
namespace {

constexpr int kDefaultTopK = 50;  // HuggingFace's, which no other family here takes over.

absl::StatusOr<LedConfig> ReadConfig(const ModelDirectory& directory) {
  absl::StatusOr<LedConfig> config = ParseLedConfig(directory);
  if (!config.ok()) return config;
  if (absl::Status status = CheckTokenIds(directory, config->decoder.vocab); !status.ok()) {
    return status;
  }
  return config;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLed(const ModelDirectory& directory) {
  const absl::StatusOr<LedConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  const absl::StatusOr<double> parameters =
      CheckLedWeights(*config, directory.checkpoint, directory.path);
  if (!parameters.ok()) return parameters.status();
  ModelInfo info;
  info.family = "led";
  info.architecture = directory.common.architecture;
  DescribeEncoderDecoder(config->decoder.vocab, MostTokens(directory, LedFacts(*config)),
                         LedDecoder::kGranule, directory.tokenizer.has_value(), true,
                         config->decoder.width, info);
  info.parameters = *parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadLed(ModelDirectory directory,
                                               const LoadOptions& options) {
  absl::StatusOr<LedConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<ComputeChoice> choice = ChooseCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  absl::StatusOr<GenerationOptions> defaults = ReadGenerationDefaults(directory);
  if (!defaults.ok()) return defaults.status();
  GeneratorParts parts;
  parts.info.family = "led";
  parts.info.architecture = directory.common.architecture;
  parts.traits.defaults = *std::move(defaults);
  parts.traits.decoder_start = {config->decoder_start};
  parts.traits.eos = config->eos;
  parts.traits.pad = config->pad;
  parts.traits.default_top_k = kDefaultTopK;
  const LedDecoder::Limits limits = {MostTokens(directory, LedFacts(*config)), options.cache_bytes};
  auto decoder = LedDecoder::Create(*std::move(config), std::move(directory.checkpoint),
                                    directory.path, choice->compute, limits);
  if (!decoder.ok()) return decoder.status();
  (*decoder)->set_warms_up(directory.serving.warmup);
  parts.info.notes = std::move(choice->notes);
  parts.info.dtype = choice->compute == Compute::kFp32 ? "fp32" : "bf16";
  parts.info.device = "cpu";
  parts.info.parameters = (*decoder)->weights().parameters;
  parts.info.memory_bytes = (*decoder)->weights().memory_bytes;
  parts.decoder = *std::move(decoder);
  if (directory.tokenizer) {
    auto codec = std::make_unique<TokenizerCodec>(*std::move(directory.tokenizer));
    parts.tokenizer = &codec->tokenizer();
    parts.codec = std::move(codec);
  }
  return MakeGeneratorModel(std::move(parts));
}

}  // namespace longview::models
