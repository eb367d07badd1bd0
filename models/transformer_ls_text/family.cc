#include "models/transformer_ls_text/family.h"

#include <optional>

namespace longview::models {

EncoderFacts LsText::FactsOf(const LsTextConfig& config) {
  EncoderFacts facts = FactsOfText("transformer_ls_text", config);
  facts.head = config.head;
  facts.max_tokens = config.positions - config.first_position();
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

absl::Status LsText::Place(const std::string&, EncoderSequence& sequence) const {
  for (int t = 0; t < sequence.tokens(); ++t) {
    sequence.positions.push_back(t + config_.first_position());
  }
  return absl::OkStatus();
}

}  // namespace longview::models
