#include "models/cst/lm_model.h"

#include <string>
#include <utility>

#include "models/cst/config.h"
#include "models/cst/lm_cache.h"
#include "models/cst/lm_decoder.h"
#include "models/dense/compute_choice.h"
#include "models/encoder/model.h"
#include "models/generation/generator_model.h"
#include "models/generation/model_defaults.h"
#include "models/text/tokenizer_codec.h"

namespace longview::models {
namespace {

absl::StatusOr<CstConfig> ReadConfig(const ModelDirectory& directory) {
  absl::StatusOr<CstConfig> config =
      ParseCstConfig(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config;
  if (absl::Status status = CheckTokenIds(directory, config->vocab); !status.ok()) return status;
  return config;
}

// What the position tables hold, lowered by the tokenizer's limit and longview.json.
int MaxTokens(const ModelDirectory& directory, const CstConfig& config) {
  EncoderFacts facts;
  facts.max_tokens = config.most_tokens;
  return MostTokens(directory, facts);
}

ModelInfo InfoOf(const ModelDirectory& directory, const CstConfig& config) {
  ModelInfo info;
  info.family = "cst";
  info.architecture = config.architecture;
  DescribeGenerator(config.vocab, MaxTokens(directory, config), CstGranule(config),
                    directory.bytes || directory.tokenizer, info);
  return info;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeCstLm(const ModelDirectory& directory) {
  const absl::StatusOr<CstConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  const absl::StatusOr<CstWeights> weights =
      LoadCstWeights(*config, directory.checkpoint, directory.path, std::nullopt);
  if (!weights.ok()) return weights.status();
  ModelInfo info = InfoOf(directory, *config);
  info.parameters = weights->parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadCstLm(ModelDirectory directory,
                                                 const LoadOptions& options) {
  const absl::StatusOr<CstConfig> config = ReadConfig(directory);
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
  parts.traits.pad = directory.common.pad_token_id;
  auto decoder =
      CstDecoder::Create(*config, std::move(directory.checkpoint), directory.path, choice->compute,
                         MaxTokens(directory, *config), options.cache_bytes);
  if (!decoder.ok()) return decoder.status();
  (*decoder)->set_warms_up(directory.serving.warmup);
  parts.info.notes = std::move(choice->notes);
  parts.info.dtype = choice->compute == Compute::kFp32 ? "fp32" : "bf16";
  parts.info.device = "cpu";
  parts.info.parameters = (*decoder)->weights().parameters;
  parts.info.memory_bytes = (*decoder)->weights().memory_bytes;
  parts.decoder = *std::move(decoder);
  if (directory.bytes) parts.codec = std::move(directory.bytes->codec);
  if (directory.tokenizer) {
    parts.codec = std::make_unique<TokenizerCodec>(*std::move(directory.tokenizer));
  }
  return MakeGeneratorModel(std::move(parts));
}

}  // namespace longview::models
