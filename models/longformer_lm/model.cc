#include "models/longformer_lm/model.h"

#include <algorithm>
#include <utility>

#include "models/decoder_stack/pass.h"
#include "models/encoder/model.h"
#include "models/generation/model/generator_placement.h"
#include "models/generation/passes/forward_decoder.h"
#include "models/generation/passes/weighed_model.h"
#include "models/longformer_lm/weights.h"

namespace longview::models {
namespace {

class LongformerLm final : public WeighedTokenModel<LongformerConfig, StackWeights> {
 public:
  LongformerLm(const LongformerConfig& config, Checkpoint checkpoint, std::string origin)
      : WeighedTokenModel(config, LoadLongformerLmWeights, std::move(checkpoint),
                          std::move(origin)),
        stack_(LongformerStack(config)) {}

  const char* family() const override { return stack_.family; }
  int vocab() const override { return stack_.vocab; }
  kernels::CacheShape Shape(kernels::DType blocks) const override {
    return StackCacheShape(stack_, blocks);
  }
  std::unique_ptr<TokenForward> Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                        int64_t logit_rows) const override {
    return std::make_unique<StackPass>(StackContext{&stack_, &weights_, frame}, std::move(runs),
                                       logit_rows);
  }

 private:
  const StackConfig stack_;
};

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
  const ForwardDecoder::Limits limits = {MostTokens(directory, config->max_tokens()), start->room};
  auto decoder = ForwardDecoder::Create(
      std::make_unique<LongformerLm>(*config, std::move(directory.checkpoint), directory.path),
      directory.path, start->compute, limits, std::move(device));
  if (!decoder.ok()) return decoder.status();
  TakeTokenizer(directory, start->parts);
  const double parameters = (*decoder)->model().parameters();
  const double bytes = (*decoder)->memory_bytes();
  return FinishGenerator(*std::move(start), *std::move(decoder), parameters, bytes);
}

}  // namespace longview::models
