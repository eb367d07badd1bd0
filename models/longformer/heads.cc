#include "models/longformer/heads.h"

#include <algorithm>

#include "models/encoder/head_rows.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

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
      case EncoderHead::kNone:
      case EncoderHead::kPairClassification:
        break;
      case EncoderHead::kSequenceClassification:
        ClassifySequences();
        break;
      case EncoderHead::kMultipleChoice:
        Choose();
        break;
      case EncoderHead::kTokenClassification:
      case EncoderHead::kQuestionAnswering:
        LabelTokens();
        break;
      case EncoderHead::kMaskedLm:
        PredictMasks();
        break;
    }
    Embed();
    return std::move(outputs_);
  }

 private:
  std::vector<float> Apply(const DenseLayer& layer, const HeadRows& rows, Activation activation) {
    return ApplyHead(layer, rows, activation, *context_.pool);
  }

  // First rows of every sequence of the items that read logits.
  HeadRows FirstRows() const {
    HeadRows rows;
    for (const HeadInput& input : inputs_) {
      if (input.item->ReadsLogits()) rows.insert(rows.end(), input.rows.begin(), input.rows.end());
    }
    return rows;
  }

  // Hands `all` out in the order of FirstRows, `width` floats per sequence.
  void Distribute(const std::vector<float>& all, int64_t width) {
    auto next = all.begin();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].item->ReadsLogits()) continue;
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

  HeadRows Pick(size_t i, std::span<const int32_t> positions) const {
    return PickRows(inputs_[i], positions, config_.width);
  }

  void LabelTokens() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const EncoderItem& item = *inputs_[i].item;
      if (!item.ReadsLogits()) continue;
      outputs_[i].logits =
          Apply(*weights_.head_out, Pick(i, item.sequences[0].wanted), Activation::kNone);
    }
  }

  // LongformerLMHead: its activation is the exact gelu whatever hidden_act says.
  void PredictMasks() {
    const RowKernels& kernels = ChooseRowKernels(Compute::kFp32);
    const std::vector<float> no_bias(static_cast<size_t>(config_.width));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const EncoderItem& item = *inputs_[i].item;
      if (!item.ReadsLogits()) continue;
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
      const EncoderItem& item = *inputs_[i].item;
      if (!item.Wants("embedding")) continue;
      const float* first = inputs_[i].rows[0];
      outputs_[i].embedding = item.pooling == Pooling::kPooler
                                  ? Apply(*weights_.pooler, {first}, Activation::kTanh)
                                  : PoolRows(item, first, config_.width);
      if (item.normalize) NormalizeVector(outputs_[i].embedding);
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

int64_t LogitFloats(const LongformerConfig& config, const EncoderItem& item) {
  if (!item.ReadsLogits()) return 0;
  const auto tokens = static_cast<int64_t>(item.sequences[0].wanted.size());
  const auto labels = static_cast<int64_t>(config.labels.size());
  switch (config.head) {
    case EncoderHead::kNone:
    case EncoderHead::kPairClassification:
      return 0;
    case EncoderHead::kSequenceClassification:
      return labels;
    case EncoderHead::kMultipleChoice:
      return static_cast<int64_t>(item.sequences.size());
    case EncoderHead::kTokenClassification:
      return tokens * labels;
    case EncoderHead::kQuestionAnswering:
      return tokens * 2;
    case EncoderHead::kMaskedLm: {
      const auto masks = static_cast<int64_t>(item.masks.size());
      return (item.Wants("logits") ? tokens : masks) * config.vocab;
    }
  }
  return 0;
}

}  // namespace longview::models
