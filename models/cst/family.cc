#include "models/cst/family.h"

#include <optional>

namespace longview::models {
namespace {

// The id that pad_mask_source `nonzero_id` masks.
constexpr int kMaskedId = 0;

}  // namespace

EncoderFacts Cst::FactsOf(const CstConfig& config) {
  EncoderFacts facts = FactsOfText("cst", config);
  facts.types = config.types;
  facts.max_tokens = config.most_tokens;
  facts.has_pooler = config.head == CstHead::kPooled && config.pooler;
  facts.pooler_reads = RowsRead::kAll;
  facts.head_reads = RowsRead::kAll;
  facts.cls_reads = std::nullopt;
  if (config.id_zero_masks) facts.pad = kMaskedId;
  switch (config.head) {
    case CstHead::kMaskedLm:
      facts.head = EncoderHead::kMaskedLm;
      facts.head_reads = RowsRead::kFirst;
      facts.labels.clear();
      break;
    case CstHead::kMatching:
      facts.head = EncoderHead::kPairClassification;
      facts.pairs = PairForm::kSeparate;
      break;
    case CstHead::kPooled:
      facts.head = EncoderHead::kSequenceClassification;
      facts.pairs = PairForm::kJoined;
      break;
    default:
      facts.head = EncoderHead::kSequenceClassification;
  }
  return facts;
}

// A masked id belongs to the document, unlike padding: its place counts.
absl::Status Cst::Place(const std::string&, EncoderSequence& sequence) const {
  for (int t = 0; t < sequence.tokens(); ++t) {
    sequence.positions.push_back(t);
    if (config_.id_zero_masks && sequence.ids[t] == kMaskedId) {
      sequence.roles[t] = kernels::kMaskedToken;
    }
  }
  return absl::OkStatus();
}

}  // namespace longview::models
