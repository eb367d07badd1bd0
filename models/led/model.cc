#include "models/led/model.h"

#include <utility>

#include "models/encoder/model.h"
#include "models/generation/generator_loading.h"
#include "models/led/decoder.h"
#include "models/led/rules.h"
#include "models/led/weights.h"

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

ModelInfo InfoOf(const ModelDirectory& directory, const LedConfig& config) {
  ModelInfo info;
  info.family = "led";
  info.architecture = directory.common.architecture;
  DescribeEncoderDecoder(config.decoder.vocab, MostTokens(directory, LedFacts(config).max_tokens),
                         LedDecoder::kGranule, directory.tokenizer.has_value(), true,
                         config.decoder.width, info);
  return info;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLed(const ModelDirectory& directory) {
  const absl::StatusOr<LedConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  const auto weights = LoadLedWeights(*config, directory.checkpoint, directory.path, std::nullopt);
  if (!weights.ok()) return weights.status();
  ModelInfo info = InfoOf(directory, *config);
  info.parameters = weights->parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadLed(ModelDirectory directory,
                                               const LoadOptions& options) {
  absl::StatusOr<LedConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<GeneratorStart> start =
      StartGenerator(directory, options, InfoOf(directory, *config));
  if (!start.ok()) return start.status();
  GeneratorTraits& traits = start->parts.traits;
  traits.bos.reset();
  traits.decoder_start = {config->decoder_start};
  traits.eos = config->eos;
  traits.pad = config->pad;
  traits.default_top_k = kDefaultTopK;
  const LedDecoder::Limits limits = {MostTokens(directory, LedFacts(*config).max_tokens),
                                     start->room};
  TakeTokenizer(directory, start->parts);
  auto decoder = LedDecoder::Create(*std::move(config), std::move(directory.checkpoint),
                                    directory.path, start->compute, limits);
  if (!decoder.ok()) return decoder.status();
  const LedWeights& weights = (*decoder)->weights();
  const double parameters = weights.parameters, bytes = weights.memory_bytes;
  return FinishGenerator(*std::move(start), *std::move(decoder), parameters, bytes);
}

}  // namespace longview::models
