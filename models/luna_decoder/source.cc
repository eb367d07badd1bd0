#include "models/luna_decoder/source.h"

#include "models/encoder/pad_positions.h"
#include "models/luna_decoder/document_pass.h"

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

kernels::CacheShape LunaSource::Shape(kernels::DType) const { return LunaDocumentShape(config_); }

std::unique_ptr<EncoderPass> LunaSource::Forward(const TokenFrame& frame, Sequences document,
                                                 const kernels::CacheSequence* kept,
                                                 bool brings_states) const {
  const LunaDocumentMemory memory =
      kept != nullptr ? LunaDocumentOf(*frame.documents, *kept) : LunaDocumentMemory();
  return std::make_unique<LunaDocumentPass>(config_, weights_, encoder_, frame, document, memory,
                                            brings_states);
}

}  // namespace longview::models
