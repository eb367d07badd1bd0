#include "models/longformer/heads.h"

#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"

namespace longview::models {
namespace {

class Heads {
 public:
  Heads(const LongformerContext& context, std::span<const HeadInput> inputs)
      : config_(*context.config), weights_(*context.weights), pass_(inputs, *context.pool) {}

  std::vector<HeadOutput> Compute() {
    switch (config_.head) {
      case EncoderHead::kNone:
      case EncoderHead::kPairClassification:
        break;
      case EncoderHead::kSequenceClassification:
        ClassifyFirstRows(*weights_.head_dense);
        break;
      case EncoderHead::kMultipleChoice:
        ClassifyFirstRows(*weights_.pooler);
        break;
      case EncoderHead::kTokenClassification:
      case EncoderHead::kQuestionAnswering:
        pass_.LabelTokens(*weights_.head_out, config_.width);
        break;
      case EncoderHead::kMaskedLm:
        // LongformerLMHead: its activation is the exact gelu whatever hidden_act says.
        pass_.PredictMasks({&*weights_.head_dense, Activation::kGelu, weights_.head_norm.view(),
                            &*weights_.head_out},
                           config_.width);
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

  // tanh(dense(first row)) of every sequence, then the linear over labels.
  void ClassifyFirstRows(const DenseLayer& dense) {
    const auto first_rows = [&](const HeadInput& input) {
      Vector rows;
      for (const float* row : input.rows) rows.insert(rows.end(), row, row + config_.width);
      return rows;
    };
    pass_.Classify(first_rows, [&](const Vector& rows) {
      return pass_.Apply(*weights_.head_out, pass_.Apply(dense, rows, Activation::kTanh),
                         Activation::kNone);
    });
  }

  const LongformerConfig& config_;
  const LongformerWeights& weights_;
  HeadsPass pass_;
};

}  // namespace

std::vector<HeadOutput> ComputeHeads(const LongformerContext& context,
                                     std::span<const HeadInput> inputs) {
  return Heads(context, inputs).Compute();
}

}  // namespace longview::models
