#include "models/led/rules.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "models/encoder/draft.h"

namespace longview::models {

EncoderFacts LedFacts(const LedConfig& config) {
  EncoderFacts facts;
  facts.family = "led";
  facts.architecture = config.encoder.architecture;
  facts.vocab = config.encoder.vocab;
  facts.width = config.encoder.width;
  facts.max_tokens = config.encoder.positions;
  facts.sep = config.encoder.sep;
  facts.pad = config.pad;
  facts.global_attention = true;
  facts.head_reads = RowsRead::kNone;
  return facts;
}

absl::Status LedRules::Place(const std::string& field, EncoderSequence& sequence) const {
  if (sequence.tokens() > facts_.max_tokens) {
    return BadRequest(field, absl::StrCat(sequence.tokens(), " tokens, the position table has ",
                                          facts_.max_tokens));
  }
  sequence.positions.resize(sequence.ids.size());
  std::iota(sequence.positions.begin(), sequence.positions.end(), 0);
  return absl::OkStatus();
}

}  // namespace longview::models
