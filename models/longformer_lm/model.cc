#include "models/longformer_lm/model.h"

#include <algorithm>
#include <utility>

#include "models/encoder/model.h"
#include "models/generation/generator_loading.h"
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
  const absl::StatusOr<LongformerConfig> config = ReadTextConfig<ParseConfig>(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<GeneratorStart> start =
      StartGenerator(directory, options, InfoOf(directory, *config));
  if (!start.ok()) return start.status();
  start->parts.traits.pad = config->pad;
  StackDecoder::Parts stack;
  stack.config = LongformerStack(*config);
  stack.compute = start->compute;
  stack.max_tokens = MostTokens(directory, config->max_tokens());
  stack.room = start->room;
  auto checkpoint = std::make_unique<Checkpoint>(std::move(directory.checkpoint));
  absl::StatusOr<LongformerLmWeights> weights =
      LoadLongformerLmWeights(*config, *checkpoint, directory.path, start->compute);
  if (!weights.ok()) return weights.status();
  stack.weights = std::move(weights->stack);
  stack.checkpoint = std::move(checkpoint);
  absl::StatusOr<std::unique_ptr<StackDecoder>> decoder = StackDecoder::Create(std::move(stack));
  if (!decoder.ok()) return decoder.status();
  TakeTokenizer(directory, start->parts);
  return FinishGenerator(*std::move(start), *std::move(decoder), weights->parameters,
                         weights->memory_bytes);
}

}  // namespace longview::models
