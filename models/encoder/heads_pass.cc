#include "models/encoder/heads_pass.h"

#include "models/text/scores.h"

namespace longview::models {
namespace {

// The tokens whose rows are projected onto the vocabulary.
const std::vector<int32_t>& PredictedRows(const EncoderItem& item) {
  return item.Wants("logits") ? item.sequences[0].wanted : item.masks;
}

}  // namespace

void HeadsPass::Classify(OfItem features, absl::FunctionRef<Vector(const Vector&)> head) {
  Vector all;
  std::vector<size_t> ends;  // End of each item's features in `all`.
  for (const HeadInput& input : inputs_) {
    if (input.item->ReadsLogits()) {
      const Vector own = features(input);
      all.insert(all.end(), own.begin(), own.end());
    }
    ends.push_back(all.size());
  }
  if (all.empty()) return;
  const Vector logits = head(all);
  size_t begin = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const size_t end = ends[i] * logits.size() / all.size();
    outputs_[i].logits.assign(logits.begin() + static_cast<ptrdiff_t>(begin),
                              logits.begin() + static_cast<ptrdiff_t>(end));
    begin = end;
  }
}

void HeadsPass::LabelTokens(const DenseLayer& out, int64_t width) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const EncoderItem& item = *inputs_[i].item;
    if (!item.ReadsLogits()) continue;
    const HeadRows rows = PickRows(inputs_[i], item.sequences[0].wanted, width);
    outputs_[i].logits = Apply(out, rows, Activation::kNone);
  }
}

HeadsPass::Vector HeadsPass::Predict(const PredictionHead& head, const HeadRows& rows) const {
  Vector hidden = Apply(*head.dense, rows, head.activation);
  NormRows(head.norm, head.dense->out(), hidden);
  return Apply(*head.out, hidden, Activation::kNone);
}

void HeadsPass::LabelTokens(const PredictionHead& head, int64_t width) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const EncoderItem& item = *inputs_[i].item;
    if (!item.ReadsLogits()) continue;
    outputs_[i].logits = Predict(head, PickRows(inputs_[i], item.sequences[0].wanted, width));
  }
}

void HeadsPass::PredictMasks(const PredictionHead& head, int64_t width) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const EncoderItem& item = *inputs_[i].item;
    if (!item.ReadsLogits()) continue;
    outputs_[i].logits = Predict(head, PickRows(inputs_[i], PredictedRows(item), width));
  }
}

void HeadsPass::Embed(OfItem pooled) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const EncoderItem& item = *inputs_[i].item;
    if (!item.Wants("embedding") || item.sentence) continue;
    outputs_[i].embedding = pooled(inputs_[i]);
    if (item.normalize) NormalizeVector(outputs_[i].embedding);
  }
}

int64_t LogitFloats(const EncoderFacts& facts, const EncoderItem& item) {
  if (!item.ReadsLogits()) return 0;
  const auto tokens = static_cast<int64_t>(item.sequences[0].wanted.size());
  const auto labels = static_cast<int64_t>(facts.labels.size());
  switch (facts.head) {
    case EncoderHead::kNone:
      return 0;
    case EncoderHead::kSequenceClassification:
    case EncoderHead::kPairClassification:
      return labels;
    case EncoderHead::kMultipleChoice:
      return static_cast<int64_t>(item.sequences.size());
    case EncoderHead::kTokenClassification:
      return tokens * labels;
    case EncoderHead::kQuestionAnswering:
      return tokens * 2;
    case EncoderHead::kMaskedLm:
      return static_cast<int64_t>(PredictedRows(item).size()) * facts.vocab;
  }
  return 0;
}

}  // namespace longview::models
