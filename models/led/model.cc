#include "models/led/model.h"

#include <string>
#include <utility>
#include <vector>

#include "models/encoder/model.h"
#include "models/generation/generator_placement.h"
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
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  return LoadLedAt(*std::move(device), std::move(directory), options, std::move(notes));
}

absl::StatusOr<std::unique_ptr<Model>> LoadLedAt(std::unique_ptr<Device> device,
                                                 ModelDirectory directory,
                                                 const LoadOptions& options,
                                                 std::vector<std::string> notes) {
  absl::StatusOr<LedConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  absl::Status fits = CheckWidth(device.get(), config->decoder.width, directory);
  if (!fits.ok()) return fits;
  absl::StatusOr<GeneratorStart> start = StartGeneratorAt(
      device.get(), directory, options, InfoOf(directory, *config), std::move(notes));
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
                                    directory.path, start->compute, limits, std::move(device));
  if (!decoder.ok()) return decoder.status();
  const double parameters = (*decoder)->parameters(), bytes = (*decoder)->memory_bytes();
  return FinishGenerator(*std::move(start), *std::move(decoder), parameters, bytes);
}

}  // namespace longview::models
