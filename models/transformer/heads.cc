#include "models/transformer/heads.h"

#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

class Heads {
 public:
  Heads(const TransformerContext& context, std::span<const HeadInput> inputs)
      : config_(*context.config), weights_(*context.weights), pass_(inputs, *context.pool) {}

  std::vector<HeadOutput> Compute() {
    switch (config_.head) {
      case EncoderHead::kNone:
      case EncoderHead::kPairClassification:
        break;
      case EncoderHead::kSequenceClassification:
      case EncoderHead::kMultipleChoice:
        pass_.Classify([&](const HeadInput& input) { return Documents(input); },
                       [&](const Vector& rows) { return Logits(rows); });
        break;
      case EncoderHead::kTokenClassification:
      case EncoderHead::kQuestionAnswering:
        if (!weights_.head_dense) {
          pass_.LabelTokens(*weights_.head_out, config_.width);
        } else {
          pass_.LabelTokens(Predictor(), config_.width);
        }
        break;
      case EncoderHead::kMaskedLm:
        pass_.PredictMasks(Predictor(), config_.width);
        break;
    }
    pass_.Embed([&](const HeadInput& input) {
      const float* first = input.rows[0];
      return input.item->pooling == Pooling::kPooler
                 ? pass_.Apply(*weights_.pooler, HeadRows{first}, Activation::kTanh)
                 : PoolRows(*input.item, first, config_.width);
    });
    return pass_.Take();
  }

 private:
  using Vector = std::vector<float>;

  PredictionHead Predictor() const {
    return {&*weights_.head_dense, config_.head_activation, weights_.head_norm->view(),
            &*weights_.head_out};
  }

  // The row that stands for each of the item's sequences.
  Vector Documents(const HeadInput& input) const {
    Vector rows;
    for (size_t s = 0; s < input.rows.size(); ++s) {
      const float* first = input.rows[s];
      const Vector row = config_.pools_mean
                             ? MeanRows(first, input.item->sequences[s].roles, config_.width)
                             : Vector(first, first + config_.width);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return rows;
  }

  // A choice is judged by the pooler where the family has one.
  Vector Logits(const Vector& rows) const {
    const bool pools = !weights_.head_dense;
    Vector hidden = pools ? pass_.Apply(*weights_.pooler, rows, Activation::kTanh)
                          : pass_.Apply(*weights_.head_dense, rows, config_.head_activation);
    if (weights_.head_norm) NormRows(weights_.head_norm->view(), config_.width, hidden);
    return pass_.Apply(*weights_.head_out, hidden, Activation::kNone);
  }

  const TransformerConfig& config_;
  const TransformerWeights& weights_;
  HeadsPass pass_;
};

}  // namespace

std::vector<HeadOutput> ComputeTransformerHeads(const TransformerContext& context,
                                                std::span<const HeadInput> inputs) {
  return Heads(context, inputs).Compute();
}

}  // namespace longview::models
