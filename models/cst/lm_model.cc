#include "models/cst/lm_model.h"

#include <string>
#include <utility>

#include "models/cst/config.h"
#include "models/cst/lm_cache.h"
#include "models/cst/lm_decoder.h"
#include "models/encoder/model.h"
#include "models/generation/generator_loading.h"

namespace longview::models {
namespace {

ModelInfo InfoOf(const ModelDirectory& directory, const CstConfig& config) {
  ModelInfo info;
  info.family = "cst";
  info.architecture = config.architecture;
  DescribeGenerator(config.vocab, MostTokens(directory, config.most_tokens), CstGranule(config),
                    directory.bytes || directory.tokenizer, info);
  return info;
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeCstLm(const ModelDirectory& directory) {
  const absl::StatusOr<CstConfig> config = ReadTextConfig<ParseCstConfig>(directory);
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
  const absl::StatusOr<CstConfig> config = ReadTextConfig<ParseCstConfig>(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<GeneratorStart> start =
      StartGenerator(directory, options, InfoOf(directory, *config));
  if (!start.ok()) return start.status();
  const int max_tokens = MostTokens(directory, config->most_tokens);
  TakeTokenizer(directory, start->parts);
  auto decoder = CstDecoder::Create(*config, std::move(directory.checkpoint), directory.path,
                                    start->compute, max_tokens, start->room);
  if (!decoder.ok()) return decoder.status();
  const CstWeights& weights = (*decoder)->weights();
  const double parameters = weights.parameters, bytes = weights.memory_bytes;
  return FinishGenerator(*std::move(start), *std::move(decoder), parameters, bytes);
}

}  // namespace longview::models
