#include "models/transformer_ls_text/family.h"

#include <algorithm>
#include <optional>

namespace longview::models {

EncoderFacts LsTextFacts(const LsTextConfig& config) {
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

size_t LsText::WorkspaceBytes(Sequences sequences) const {
  const int64_t expanded =
      std::max(3 * config_.width + config_.columns(), config_.width + config_.intermediate);
  return ScratchBytes(sequences) +
         static_cast<size_t>(kPanelRows * expanded * ElementBytes(context_.compute));
}

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

}  // namespace longview::models
