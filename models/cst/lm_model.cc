#include "models/cst/lm_model.h"

#include <algorithm>
#include <utility>

#include "models/cst/lm_cache.h"
#include "models/cst/lm_pass.h"
#include "models/encoder/model.h"
#include "models/generation/model/generator_placement.h"
#include "models/generation/passes/forward_decoder.h"
#include "models/generation/passes/weighed_model.h"

namespace longview::models {
namespace {

class CstLm final : public WeighedTokenModel<CstConfig, CstWeights> {
 public:
  CstLm(const CstConfig& config, Checkpoint checkpoint, std::string origin)
      : WeighedTokenModel(config, LoadCstWeights, std::move(checkpoint), std::move(origin)) {}

  const char* family() const override { return "cst"; }
  int vocab() const override { return config_.vocab; }
  int granule() const override { return CstGranule(config_); }
  // A token that ends its slice.
  int64_t CostliestPosition(int max_tokens) const override {
    return std::max<int64_t>(max_tokens / config_.slice * config_.slice - 1, 0);
  }
  kernels::CacheShape Shape(kernels::DType blocks) const override {
    return CstCacheShape(config_, blocks);
  }
  std::unique_ptr<TokenForward> Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                        int64_t logit_rows) const override {
    return std::make_unique<CstLmPass>(config_, weights_, frame, std::move(runs), logit_rows);
  }
};

ModelInfo InfoOf(const ModelDirectory& directory, const CstConfig& config) {
  ModelInfo info;
  info.family = "cst";
  info.architecture = config.architecture;
  DescribeGenerator(config.vocab, MostTokens(directory, config.most_tokens), CstGranule(config),
                    directory.bytes || directory.tokenizer, info);
  return info;
}

}  // namespace

std::unique_ptr<TokenModel> MakeCstLm(const CstConfig& config, Checkpoint checkpoint,
                                      const std::string& origin) {
  return std::make_unique<CstLm>(config, std::move(checkpoint), origin);
}

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
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  return LoadCstLmAt(*std::move(device), std::move(directory), options, std::move(notes));
}

absl::StatusOr<std::unique_ptr<Model>> LoadCstLmAt(std::unique_ptr<Device> device,
                                                   ModelDirectory directory,
                                                   const LoadOptions& options,
                                                   std::vector<std::string> notes) {
  const absl::StatusOr<CstConfig> config = ReadTextConfig<ParseCstConfig>(directory);
  if (!config.ok()) return config.status();
  absl::Status fits = CheckWidth(device.get(), config->width, directory);
  if (!fits.ok()) return fits;
  absl::StatusOr<GeneratorStart> start = StartGeneratorAt(
      device.get(), directory, options, InfoOf(directory, *config), std::move(notes));
  if (!start.ok()) return start.status();
  const ForwardDecoder::Limits limits = {MostTokens(directory, config->most_tokens), start->room};
  TakeTokenizer(directory, start->parts);
  auto decoder =
      ForwardDecoder::Create(MakeCstLm(*config, std::move(directory.checkpoint), directory.path),
                             directory.path, start->compute, limits, std::move(device));
  if (!decoder.ok()) return decoder.status();
  const double parameters = (*decoder)->model().parameters();
  const double bytes = (*decoder)->memory_bytes();
  return FinishGenerator(*std::move(start), *std::move(decoder), parameters, bytes);
}

}  // namespace longview::models
