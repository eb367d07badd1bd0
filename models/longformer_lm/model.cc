#include "models/longformer_lm/model.h"

#include <algorithm>
#include <utility>

#include "models/dense/compute_choice.h"
#include "models/encoder/model.h"
#include "models/generation/generator_model.h"
#include "models/generation/model_defaults.h"
#include "models/longformer_lm/weights.h"
#include "models/stack/decoder.h"
#include "models/text/tokenizer_codec.h"

namespace longview::models {
namespace {

// The keys are the masked LM's.
absl::StatusOr<LongformerConfig> ReadConfig(const ModelDirectory& directory) {
  CommonConfig common = directory.common;
  common.architecture = "LongformerForMaskedLM";
  absl::StatusOr<LongformerConfig> config =
      ParseLongformerConfig(directory.config, common, directory.config_path);
  if (!config.ok()) return config;
  if (absl::Status status = CheckTokenIds(directory, config->vocab); !status.ok()) return status;
  return config;
}

// What the position table holds, lowered by the tokenizer's limit and longview.json.
int MaxTokens(const ModelDirectory& directory, const LongformerConfig& config) {
  EncoderFacts facts;
  facts.max_tokens = config.max_tokens();
  return MostTokens(directory, facts);
}

ModelInfo InfoOf(const ModelDirectory& directory, const LongformerConfig& config) {
  ModelInfo info;
  info.family = "longformer_lm";
  info.architecture = directory.common.architecture;
  DescribeGenerator(config.vocab, MaxTokens(directory, config),
                    static_cast<int>(kernels::kBlockSlots), directory.tokenizer.has_value(), info);
  return info;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLongformerLm(const ModelDirectory& directory) {
  const absl::StatusOr<LongformerConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  const absl::StatusOr<double> parameters =
      CheckLongformerLmWeights(*config, directory.checkpoint, directory.path);
  if (!parameters.ok()) return parameters.status();
  ModelInfo info = InfoOf(directory, *config);
  info.parameters = *parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadLongformerLm(ModelDirectory directory,
                                                        const LoadOptions& options) {
  const absl::StatusOr<LongformerConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<ComputeChoice> choice = ChooseCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  absl::StatusOr<GenerationOptions> defaults = ReadGenerationDefaults(directory);
  if (!defaults.ok()) return defaults.status();
  GeneratorParts parts;
  parts.info = InfoOf(directory, *config);
  parts.traits.defaults = *std::move(defaults);
  parts.traits.bos = directory.common.bos_token_id;
  parts.traits.eos = directory.common.eos_token_ids;
  parts.traits.pad = config->pad;
  StackDecoder::Parts stack;
  stack.config = LongformerStack(*config);
  stack.compute = choice->compute;
  stack.max_tokens = MaxTokens(directory, *config);
  stack.cache_bytes = options.cache_bytes;
  stack.warms_up = directory.serving.warmup;
  auto checkpoint = std::make_unique<Checkpoint>(std::move(directory.checkpoint));
  absl::StatusOr<LongformerLmWeights> weights =
      LoadLongformerLmWeights(*config, *checkpoint, directory.path, choice->compute);
  if (!weights.ok()) return weights.status();
  stack.weights = std::move(weights->stack);
  stack.checkpoint = std::move(checkpoint);
  absl::StatusOr<std::unique_ptr<StackDecoder>> decoder = StackDecoder::Create(std::move(stack));
  if (!decoder.ok()) return decoder.status();
  parts.decoder = *std::move(decoder);
  parts.info.notes = std::move(choice->notes);
  parts.info.dtype = choice->compute == Compute::kFp32 ? "fp32" : "bf16";
  parts.info.device = "cpu";
  parts.info.parameters = weights->parameters;
  parts.info.memory_bytes = weights->memory_bytes;
  if (directory.tokenizer) {
    parts.codec = std::make_unique<TokenizerCodec>(*std::move(directory.tokenizer));
  }
  return MakeGeneratorModel(std::move(parts));
}

}  // namespace longview::models
