#include "models/longformer/heads.h"

#include <algorithm>

#include "models/parallel.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

using Rows = std::vector<const float*>;

bool ReadsLogits(const LongformerItem& item) {
  if (item.task == Task::kEmbedding) return false;
  return item.typed || item.Wants("logits") || item.Wants("mask_logits") ||
         item.Wants("start_logits") || item.Wants("end_logits");
}

Rows RowsOf(const std::vector<float>& values, int64_t width) {
  Rows rows;
  for (size_t at = 0; at < values.size(); at += static_cast<size_t>(width)) {
    rows.push_back(values.data() + at);
  }
  return rows;
}

class Heads {
 public:
  Heads(const EncoderContext& context, std::span<const HeadInput> inputs)
      : context_(context),
        config_(*context.config),
        weights_(*context.weights),
        inputs_(inputs),
        outputs_(inputs.size()) {}

  std::vector<HeadOutput> Compute() {
    switch (config_.head) {
      case LongformerHead::kNone:
        break;
      case LongformerHead::kSequenceClassification:
        ClassifySequences();
        break;
      case LongformerHead::kMultipleChoice:
        Choose();
        break;
      case LongformerHead::kTokenClassification:
      case LongformerHead::kQuestionAnswering:
        LabelTokens();
        break;
      case LongformerHead::kMaskedLm:
        PredictMasks();
        break;
    }
    Embed();
    return std::move(outputs_);
  }

 private:
  std::vector<float> Apply(const DenseLayer& layer, const Rows& rows, Activation activation) {
    std::vector<float> out(rows.size() * static_cast<size_t>(layer.out()));
    ApplyToRows(layer, rows, activation, *context_.pool, out.data());
    return out;
  }

  // First rows of every sequence of the items that read logits.
  Rows FirstRows() const {
    Rows rows;
    for (const HeadInput& input : inputs_) {
      if (ReadsLogits(*input.item)) rows.insert(rows.end(), input.rows.begin(), input.rows.end());
    }
    return rows;
  }

  // Hands `all` out in the order of FirstRows, `width` floats per sequence.
  void Distribute(const std::vector<float>& all, int64_t width) {
    auto next = all.begin();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!ReadsLogits(*inputs_[i].item)) continue;
      const auto end = next + static_cast<ptrdiff_t>(inputs_[i].rows.size()) * width;
      outputs_[i].logits.assign(next, end);
      next = end;
    }
  }

  void ClassifySequences() {
    const std::vector<float> hidden = Apply(*weights_.head_dense, FirstRows(), Activation::kTanh);
    Distribute(Apply(*weights_.head_out, RowsOf(hidden, config_.width), Activation::kNone),
               weights_.head_out->out());
  }

  void Choose() {
    const std::vector<float> pooled = Apply(*weights_.pooler, FirstRows(), Activation::kTanh);
    Distribute(Apply(*weights_.head_out, RowsOf(pooled, config_.width), Activation::kNone), 1);
  }

  // Rows of the one sequence of input i; `positions` must be wanted.
  Rows Pick(size_t i, std::span<const int32_t> positions) const {
    const std::vector<int32_t>& wanted = inputs_[i].item->sequences[0].wanted;
    Rows rows;
    for (const int32_t position : positions) {
      const auto place = std::lower_bound(wanted.begin(), wanted.end(), position) - wanted.begin();
      rows.push_back(inputs_[i].rows[0] + place * config_.width);
    }
    return rows;
  }

  void LabelTokens() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const LongformerItem& item = *inputs_[i].item;
      if (!ReadsLogits(item)) continue;
      outputs_[i].logits =
          Apply(*weights_.head_out, Pick(i, item.sequences[0].wanted), Activation::kNone);
    }
  }

  // LongformerLMHead: its activation is the exact gelu whatever hidden_act says.
  void PredictMasks() {
    const RowKernels& kernels = ChooseRowKernels(Compute::kFp32);
    const std::vector<float> no_bias(static_cast<size_t>(config_.width));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const LongformerItem& item = *inputs_[i].item;
      if (!ReadsLogits(item)) continue;
      const bool all = item.Wants("logits");
      std::vector<float> hidden =
          Apply(*weights_.head_dense, Pick(i, all ? item.sequences[0].wanted : item.masks),
                Activation::kGelu);
      for (float* row = hidden.data(); row < hidden.data() + hidden.size(); row += config_.width) {
        kernels.residual_norm(row, nullptr, no_bias.data(), weights_.head_norm.view(),
                              config_.width, nullptr);
      }
      outputs_[i].logits =
          Apply(*weights_.head_out, RowsOf(hidden, config_.width), Activation::kNone);
    }
  }

  void Embed() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const LongformerItem& item = *inputs_[i].item;
      if (!item.Wants("embedding")) continue;
      const float* first = inputs_[i].rows[0];
      std::vector<float>& embedding = outputs_[i].embedding;
      switch (item.pooling) {
        case Pooling::kCls:
          embedding.assign(first, first + config_.width);
          break;
        case Pooling::kMean:
          embedding = MeanRows(first, item.sequences[0].roles, config_.width);
          break;
        case Pooling::kPooler:
          embedding = Apply(*weights_.pooler, {first}, Activation::kTanh);
          break;
      }
      if (item.normalize) NormalizeVector(embedding);
    }
  }

  const EncoderContext& context_;
  const LongformerConfig& config_;
  const LongformerWeights& weights_;
  const std::span<const HeadInput> inputs_;
  std::vector<HeadOutput> outputs_;
};

}  // namespace

std::vector<HeadOutput> ComputeHeads(const EncoderContext& context,
                                     std::span<const HeadInput> inputs) {
  return Heads(context, inputs).Compute();
}

int64_t LogitFloats(const LongformerConfig& config, const LongformerItem& item) {
  if (!ReadsLogits(item)) return 0;
  const auto tokens = static_cast<int64_t>(item.sequences[0].wanted.size());
  const auto labels = static_cast<int64_t>(config.labels.size());
  switch (config.head) {
    case LongformerHead::kNone:
      return 0;
    case LongformerHead::kSequenceClassification:
      return labels;
    case LongformerHead::kMultipleChoice:
      return static_cast<int64_t>(item.sequences.size());
    case LongformerHead::kTokenClassification:
      return tokens * labels;
    case LongformerHead::kQuestionAnswering:
      return tokens * 2;
    case LongformerHead::kMaskedLm: {
      const auto masks = static_cast<int64_t>(item.masks.size());
      return (item.Wants("logits") ? tokens : masks) * config.vocab;
    }
  }
  return 0;
}

}  // namespace longview::models
