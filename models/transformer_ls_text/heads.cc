#include "models/transformer_ls_text/heads.h"

#include <algorithm>

#include "models/encoder/head_rows.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

class Heads {
 public:
  Heads(const LsTextContext& context, const LsTextBatch& batch, std::span<const HeadInput> inputs)
      : context_(context),
        config_(*context.config),
        weights_(*context.weights),
        batch_(batch),
        inputs_(inputs),
        outputs_(inputs.size()) {}

  std::vector<HeadOutput> Compute() {
    Classify();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const EncoderItem& item = *inputs_[i].item;
      if (!item.Wants("embedding")) continue;
      outputs_[i].embedding = Embedding(inputs_[i]);
      if (item.normalize) NormalizeVector(outputs_[i].embedding);
    }
    return std::move(outputs_);
  }

 private:
  // The vector that stands for document `d` of the item.
  std::vector<float> Document(const HeadInput& input, size_t d) const {
    if (config_.cls == LsClass::kNone) return Mean(input.item->sequences[d], input.rows[d]);
    const float* row = batch_.ClassRow(input.first_sequence + static_cast<int>(d));
    return {row, row + config_.width};
  }

  // Masked tokens add nothing but count, up to the last token that is not masked: the mean of the
  // published code on the document without padding, or on its padded data files.
  std::vector<float> Mean(const EncoderSequence& sequence, const float* rows) const {
    const auto last =
        std::find(sequence.roles.rbegin(), sequence.roles.rend(), kernels::kLocalToken);
    const auto length = static_cast<double>(sequence.roles.rend() - last);
    const double divisor = config_.mean_over_limit ? config_.positions : length;
    const double visible = static_cast<double>(
        std::count(sequence.roles.begin(), sequence.roles.end(), kernels::kLocalToken));
    std::vector<float> mean = MeanRows(rows, sequence.roles, config_.width);
    for (float& value : mean) value = static_cast<float>(value * (visible / divisor));
    return mean;
  }

  std::vector<float> Embedding(const HeadInput& input) const {
    const bool by_class = config_.cls != LsClass::kNone;
    if (by_class && input.item->pooling == Pooling::kMean) {
      return PoolRows(*input.item, input.rows[0], config_.width);
    }
    return Document(input, 0);
  }

  std::vector<float> Features(const HeadInput& input) const {
    std::vector<float> features = Document(input, 0);
    if (config_.head != EncoderHead::kPairClassification) return features;
    const std::vector<float> first = features, second = Document(input, 1);
    features.insert(features.end(), second.begin(), second.end());
    for (size_t i = 0; i < first.size(); ++i) features.push_back(first[i] * second[i]);
    for (size_t i = 0; i < first.size(); ++i) features.push_back(first[i] - second[i]);
    return features;
  }

  void Classify() {
    std::vector<float> features;
    for (const HeadInput& input : inputs_) {
      if (!input.item->ReadsLogits()) continue;
      const std::vector<float> own = Features(input);
      features.insert(features.end(), own.begin(), own.end());
    }
    const DenseLayer& hidden = *weights_.head_hidden;
    const DenseLayer& out = *weights_.head_out;
    const std::vector<float> middle =
        ApplyHead(hidden, RowsOf(features, hidden.in()), Activation::kRelu, *context_.pool);
    const std::vector<float> logits =
        ApplyHead(out, RowsOf(middle, out.in()), Activation::kNone, *context_.pool);
    auto next = logits.begin();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].item->ReadsLogits()) continue;
      outputs_[i].logits.assign(next, next + out.out());
      next += out.out();
    }
  }

  const LsTextContext& context_;
  const LsTextConfig& config_;
  const LsTextWeights& weights_;
  const LsTextBatch& batch_;
  const std::span<const HeadInput> inputs_;
  std::vector<HeadOutput> outputs_;
};

}  // namespace

std::vector<HeadOutput> ComputeLsTextHeads(const LsTextContext& context, const LsTextBatch& batch,
                                           std::span<const HeadInput> inputs) {
  return Heads(context, batch, inputs).Compute();
}

}  // namespace longview::models
