#include "models/transformer/heads.h"

#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

class Heads {
 public:
  Heads(const TaskHeads& heads, const kernels::ParallelFor& pool, std::span<const HeadInput> inputs)
      : heads_(heads), pass_(inputs, pool) {}

  std::vector<HeadOutput> Compute() {
    switch (heads_.head) {
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
        if (heads_.dense == nullptr) {
          pass_.LabelTokens(*heads_.out, heads_.width);
        } else {
          pass_.LabelTokens(Predictor(), heads_.width);
        }
        break;
      case EncoderHead::kMaskedLm:
        pass_.PredictMasks(Predictor(), heads_.width);
        break;
    }
    pass_.Embed([&](const HeadInput& input) {
      const float* first = input.rows[0];
      return input.item->pooling == Pooling::kPooler
                 ? pass_.Apply(*heads_.pooler, HeadRows{first}, Activation::kTanh)
                 : PoolRows(*input.item, first, heads_.width);
    });
    return pass_.Take();
  }

 private:
  using Vector = std::vector<float>;

  PredictionHead Predictor() const {
    return {heads_.dense, heads_.activation, heads_.norm->view(), heads_.out};
  }

  // The row that stands for each of the item's sequences.
  Vector Documents(const HeadInput& input) const {
    Vector rows;
    for (size_t s = 0; s < input.rows.size(); ++s) {
      const float* first = input.rows[s];
      const Vector row = heads_.pools_mean
                             ? MeanRows(first, input.item->sequences[s].roles, heads_.width)
                             : Vector(first, first + heads_.width);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return rows;
  }

  // A choice is judged by the pooler where the family has one.
  Vector Logits(const Vector& rows) const {
    const bool pools = heads_.dense == nullptr;
    Vector hidden = pools ? pass_.Apply(*heads_.pooler, rows, Activation::kTanh)
                          : pass_.Apply(*heads_.dense, rows, heads_.activation);
    if (heads_.norm != nullptr) NormRows(heads_.norm->view(), heads_.width, hidden);
    return pass_.Apply(*heads_.out, hidden, Activation::kNone);
  }

  const TaskHeads heads_;
  HeadsPass pass_;
};

}  // namespace

std::vector<HeadOutput> ComputeTaskHeads(const TaskHeads& heads, const kernels::ParallelFor& pool,
                                         std::span<const HeadInput> inputs) {
  return Heads(heads, pool, inputs).Compute();
}

}  // namespace longview::models
