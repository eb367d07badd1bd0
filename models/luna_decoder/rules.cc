#include "models/luna_decoder/rules.h"

#include "models/luna/placement.h"

namespace longview::models {

LunaRules::LunaRules(const LunaDecoderConfig& config, int max_tokens) {
  const LunaConfig& encoder = *config.encoder;
  facts_.family = "luna";
  facts_.architecture = encoder.architecture;
  facts_.vocab = encoder.vocab;
  facts_.width = encoder.width;
  facts_.max_tokens = max_tokens;
  facts_.sep = encoder.eos;
  facts_.pad = encoder.pad;
  facts_.pad_masks = facts_.masked_take_no_position = true;
  facts_.head_reads = RowsRead::kNone;
}

absl::Status LunaRules::Place(const std::string&, EncoderSequence& sequence) const {
  PlaceLunaTokens(facts_.pad, sequence);
  return absl::OkStatus();
}

}  // namespace longview::models
