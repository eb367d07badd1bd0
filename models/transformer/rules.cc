#include "models/transformer/rules.h"

#include <numeric>

namespace longview::models {

EncoderFacts FactsOfTransformer(const std::string& family, const TransformerConfig& config) {
  EncoderFacts facts = FactsOfText(family, config);
  facts.head = config.head;
  facts.types = config.types;
  facts.max_tokens = config.max_tokens;
  facts.pairs = PairForm::kJoined;
  if (config.sep >= 0) facts.sep = config.sep;
  facts.pad = config.pad;
  facts.has_pooler = config.has_pooler;
  if (config.pools_mean) facts.head_reads = RowsRead::kAll;
  return facts;
}

void PlaceByIndex(EncoderSequence& sequence) {
  sequence.positions.resize(sequence.ids.size());
  std::iota(sequence.positions.begin(), sequence.positions.end(), 0);
}

}  // namespace longview::models
