#include "models/longformer_lm/model.h"

#include <algorithm>
#include <utility>

#include "models/encoder/model.h"
#include "models/generation/generator_placement.h"
#include "models/longformer_lm/weights.h"
#include "models/stack/decoder.h"

namespace longview::models {
namespace {

// The keys are the masked LM's.
absl::StatusOr<LongformerConfig> ParseConfig(const nlohmann::json& json, CommonConfig common,
                                             const std::string& origin) {
  common.architecture = "LongformerForMaskedLM";
  return ParseLongformerConfig(json, common, origin);
}

ModelInfo InfoOf(const ModelDirectory& directory, const LongformerConfig& config) {
  ModelInfo info;
  info.family = "longformer_lm";
  info.architecture = directory.common.architecture;
  DescribeGenerator(config.vocab, MostTokens(directory, config.max_tokens()),
                    static_cast<int>(kernels::kBlockSlots), directory.tokenizer.has_value(), info);
  return info;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLongformerLm(const ModelDirectory& directory) {
  const absl::StatusOr<LongformerConfig> config = ReadTextConfig<ParseConfig>(directory);
  if (!config.ok()) return config.status();
  const auto weights =
      LoadLongformerLmWeights(*config, directory.checkpoint, directory.path, std::nullopt);
  if (!weights.ok()) return weights.status();
  ModelInfo info = InfoOf(directory, *config);
  info.parameters = weights->parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadLongformerLm(ModelDirectory directory,
                                                        const LoadOptions& options) {
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  return LoadLongformerLmAt(*std::move(device), std::move(directory), options, std::move(notes));
}

absl::StatusOr<std::unique_ptr<Model>> LoadLongformerLmAt(std::unique_ptr<Device> device,
                                                          ModelDirectory directory,
                                                          const LoadOptions& options,
                                                          std::vector<std::string> notes) {
  const absl::StatusOr<LongformerConfig> config = ReadTextConfig<ParseConfig>(directory);
  if (!config.ok()) return config.status();
  if (absl::Status status = CheckWidth(device.get(), config->width, directory); !status.ok()) {
    return status;
  }
  absl::StatusOr<GeneratorStart> start = StartGeneratorAt(
      device.get(), directory, options, InfoOf(directory, *config), std::move(notes));
  if (!start.ok()) return start.status();
  start->parts.traits.pad = config->pad;
  StackDecoder::Parts stack;
  stack.config = LongformerStack(*config);
  stack.compute = start->compute;
  stack.max_tokens = MostTokens(directory, config->max_tokens());
  stack.room = start->room;
  stack.checkpoint = std::make_unique<Checkpoint>(std::move(directory.checkpoint));
  stack.load = [config = *config, &checkpoint = *stack.checkpoint, origin = directory.path](
                   std::optional<Compute> compute, DeviceStore* store) {
    return LoadLongformerLmWeights(config, checkpoint, origin, compute, store);
  };
  absl::StatusOr<std::unique_ptr<StackDecoder>> decoder =
      StackDecoder::Create(std::move(stack), directory.path, std::move(device));
  if (!decoder.ok()) return decoder.status();
  TakeTokenizer(directory, start->parts);
  const double parameters = (*decoder)->parameters(), bytes = (*decoder)->memory_bytes();
  return FinishGenerator(*std::move(start), *std::move(decoder), parameters, bytes);
}

}  // namespace longview::models
