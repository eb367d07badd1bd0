#include "models/cst/heads.h"

#include <algorithm>
#include <utility>

#include "models/encoder/head_rows.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

class Heads {
 public:
  Heads(const CstContext& context, std::span<const HeadInput> inputs)
      : context_(context),
        config_(*context.config),
        weights_(*context.weights),
        inputs_(inputs),
        outputs_(inputs.size()) {}

  std::vector<HeadOutput> Compute() {
    config_.head == CstHead::kMaskedLm ? PredictMasks() : Classify();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const EncoderItem& item = *inputs_[i].item;
      if (!item.Wants("embedding")) continue;
      outputs_[i].embedding = Embedding(inputs_[i]);
      if (item.normalize) NormalizeVector(outputs_[i].embedding);
    }
    return std::move(outputs_);
  }

 private:
  std::vector<float> Apply(const DenseLayer& layer, const HeadRows& rows,
                           Activation activation) const {
    return ApplyHead(layer, rows, activation, *context_.pool);
  }

  // The mean over the document's tokens that are not masked; zeros where all are.
  std::vector<float> Mean(const HeadInput& input, size_t document) const {
    const std::vector<uint8_t>& roles = input.item->sequences[document].roles;
    std::vector<float> mean = MeanRows(input.rows[document], roles, config_.width);
    if (!config_.mean_over_limit) return mean;
    const auto masked = std::count(roles.begin(), roles.end(), kernels::kMaskedToken);
    const double visible = static_cast<double>(roles.size()) - static_cast<double>(masked);
    for (float& value : mean) value = static_cast<float>(value * (visible / config_.most_tokens));
    return mean;
  }

  std::vector<float> Pooled(const HeadInput& input) const {
    const std::vector<float> mean = Mean(input, 0);
    return Apply(*weights_.pooler, {mean.data()}, Activation::kTanh);
  }

  std::vector<float> Embedding(const HeadInput& input) const {
    return input.item->pooling == Pooling::kPooler
               ? Pooled(input)
               : PoolRows(*input.item, input.rows[0], config_.width);
  }

  std::vector<float> Features(const HeadInput& input) const {
    if (config_.head == CstHead::kPooled && config_.pooler) return Pooled(input);
    std::vector<float> features = Mean(input, 0);
    if (config_.head != CstHead::kMatching) return features;
    const std::vector<float> first = features, second = Mean(input, 1);
    features.insert(features.end(), second.begin(), second.end());
    if (!config_.differences) return features;
    for (size_t i = 0; i < first.size(); ++i) features.push_back(first[i] * second[i]);
    for (size_t i = 0; i < first.size(); ++i) features.push_back(first[i] - second[i]);
    return features;
  }

  void Classify() {
    std::vector<float> values;
    for (const HeadInput& input : inputs_) {
      if (!input.item->ReadsLogits()) continue;
      const std::vector<float> own = Features(input);
      values.insert(values.end(), own.begin(), own.end());
    }
    if (weights_.head_dense) {
      values =
          Apply(*weights_.head_dense, RowsOf(values, weights_.head_dense->in()), Activation::kRelu);
    }
    const DenseLayer& out = *weights_.head_out;
    const std::vector<float> logits = Apply(out, RowsOf(values, out.in()), Activation::kNone);
    auto next = logits.begin();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].item->ReadsLogits()) continue;
      outputs_[i].logits.assign(next, next + out.out());
      next += out.out();
    }
  }

  // BERT's head: its activation is the exact gelu whatever hidden_act says.
  void PredictMasks() {
    const RowKernels& kernels = ChooseRowKernels(Compute::kFp32);
    const int64_t width = config_.embedding_width;
    const std::vector<float> no_bias(static_cast<size_t>(width));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const EncoderItem& item = *inputs_[i].item;
      if (!item.ReadsLogits()) continue;
      const bool all = item.Wants("logits");
      const std::vector<int32_t>& positions = all ? item.sequences[0].wanted : item.masks;
      std::vector<float> hidden = Apply(
          *weights_.head_dense, PickRows(inputs_[i], positions, config_.width), Activation::kGelu);
      for (float* row = hidden.data(); row < hidden.data() + hidden.size(); row += width) {
        kernels.residual_norm(row, nullptr, no_bias.data(), weights_.head_norm->view(), width,
                              nullptr);
      }
      outputs_[i].logits = Apply(*weights_.head_out, RowsOf(hidden, width), Activation::kNone);
    }
  }

  const CstContext& context_;
  const CstConfig& config_;
  const CstWeights& weights_;
  const std::span<const HeadInput> inputs_;
  std::vector<HeadOutput> outputs_;
};

}  // namespace

std::vector<HeadOutput> ComputeCstHeads(const CstContext& context,
                                        std::span<const HeadInput> inputs) {
  return Heads(context, inputs).Compute();
}

int64_t CstLogitFloats(const CstConfig& config, const EncoderItem& item) {
  if (!item.ReadsLogits()) return 0;
  if (config.head != CstHead::kMaskedLm) return static_cast<int64_t>(config.labels.size());
  const std::vector<int32_t>& rows = item.Wants("logits") ? item.sequences[0].wanted : item.masks;
  return static_cast<int64_t>(rows.size()) * config.vocab;
}

}  // namespace longview::models
