#include "models/transformer_ls_text/model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/base/cpu_features.h"
#include "models/encoder/family.h"
#include "models/encoder/model.h"
#include "models/parallel.h"
#include "models/transformer_ls_text/encoder.h"

namespace longview::models {
namespace {

absl::StatusOr<LsTextConfig> ReadConfig(const ModelDirectory& directory) {
  absl::StatusOr<LsTextConfig> config =
      ParseLsTextConfig(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config;
  if (absl::Status status = CheckTokenIds(directory, config->vocab); !status.ok()) return status;
  return config;
}

EncoderFacts FactsOf(const LsTextConfig& config) {
  EncoderFacts facts;
  facts.family = "transformer_ls_text";
  facts.architecture = config.architecture;
  facts.head = config.head;
  facts.vocab = config.vocab;
  facts.width = config.width;
  facts.max_tokens = config.positions - config.first_position();
  facts.labels = config.labels;
  facts.problem_type = config.problem_type;
  const bool pair = config.head == EncoderHead::kPairClassification;
  facts.pairs = pair ? PairForm::kSeparate : PairForm::kNone;
  facts.pad = kLsMaskedId;
  facts.pad_masks = true;
  const bool by_class = config.cls != LsClass::kNone;
  facts.head_reads = by_class ? RowsRead::kNone : RowsRead::kAll;
  facts.cls_reads = by_class ? std::optional(RowsRead::kNone) : std::nullopt;
  facts.default_pooling = by_class ? Pooling::kCls : Pooling::kMean;
  return facts;
}

class LsText final : public EncoderFamily {
 public:
  LsText(LsTextConfig config, LsTextWeights weights, Compute compute)
      : config_(std::move(config)), weights_(std::move(weights)), facts_(FactsOf(config_)) {
    context_.config = &config_;
    context_.weights = &weights_;
    context_.compute = compute;
    context_.isa = compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
    context_.pool = &pool_;
  }

  const EncoderFacts& facts() const override { return facts_; }
  Compute compute() const override { return context_.compute; }
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override { return weights_.memory_bytes; }

  absl::Status Place(const std::string&, EncoderSequence& sequence) const override {
    for (int t = 0; t < sequence.tokens(); ++t) {
      sequence.positions.push_back(t + config_.first_position());
    }
    return absl::OkStatus();
  }

  std::unique_ptr<EncoderBatch> Begin(Sequences sequences, ScratchKeeper& scratch,
                                      EncoderTimes* times) const override {
    return std::make_unique<LsTextBatch>(context_, sequences, scratch, times);
  }

  size_t WorkspaceBytes(Sequences sequences) const override {
    const int64_t expanded =
        std::max(3 * config_.width + config_.columns(), config_.width + config_.intermediate);
    return LsTextBatch::ScratchBytes(context_, sequences) +
           static_cast<size_t>(kPanelRows * expanded * ElementBytes(context_.compute));
  }

  EncoderWork WorkOf(const EncoderSequence& sequence) const override;

  int64_t LogitFloats(const EncoderItem& item) const override {
    return item.ReadsLogits() ? static_cast<int64_t>(config_.labels.size()) : 0;
  }

 private:
  const LsTextConfig config_;
  const LsTextWeights weights_;
  const EncoderFacts facts_;
  const TorchParallelFor pool_;
  LsTextContext context_;
};

// Per layer 4 n d^2 for the projections and the output, 2 n d f for the MLP, n d h r for the
// scores of the dynamic projection, 2 n r d for its sums, 2 n d per key that a token sees.
EncoderWork LsText::WorkOf(const EncoderSequence& sequence) const {
  const double n = sequence.tokens(), d = config_.width, f = config_.intermediate;
  const double r = config_.rank;
  const double extension = config_.window > 0 ? std::max(config_.window / 2, 1) : 0;
  const double window = std::min(n, config_.window + 2 * extension);
  EncoderWork work;
  work.rows = 2 * n * d;
  for (int layer = 0; layer < config_.layers; ++layer) {
    const bool last = layer + 1 == config_.layers;
    const double own = config_.HasClass(layer) ? 1 : 0;
    const double inputs = n + own;
    const double outputs = last ? static_cast<double>(sequence.wanted.size()) + own : inputs;
    work.linear += inputs * d * (3 * d + config_.columns()) + outputs * (d * d + 2 * d * f);
    work.attention += 2 * n * r * d + 2 * n * d * (r + own + window) + 2 * own * n * d;
    work.rows += inputs * (3 * d + config_.columns()) + outputs * (2 * d + f);
  }
  return work;
}

absl::StatusOr<std::unique_ptr<EncoderFamily>> Build(const ModelDirectory& directory,
                                                     Compute compute) {
  absl::StatusOr<LsTextConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<LsTextWeights> weights =
      LoadLsTextWeights(*config, directory.checkpoint, directory.path, compute);
  if (!weights.ok()) return weights.status();
  return std::make_unique<LsText>(*std::move(config), *std::move(weights), compute);
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLsText(const ModelDirectory& directory) {
  absl::StatusOr<LsTextConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<LsTextWeights> weights =
      LoadLsTextWeights(*config, directory.checkpoint, directory.path, std::nullopt);
  if (!weights.ok()) return weights.status();
  return DescribeEncoder(directory, FactsOf(*config), weights->parameters);
}

absl::StatusOr<std::unique_ptr<Model>> LoadLsText(ModelDirectory directory,
                                                  const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, Build);
}

}  // namespace longview::models
