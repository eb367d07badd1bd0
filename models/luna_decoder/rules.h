// How requests become documents of a translation model: positions behind the padding's id, masked
// tokens anywhere, no global attention.
// Immutable: thread-safe.
#pragma once

#include <string>

#include "models/encoder/rules.h"
#include "models/luna_decoder/config.h"

namespace longview::models {

class LunaRules final : public SequenceRules {
 public:
  // REQUIRES: the config has an encoder. `max_tokens` of a document.
  LunaRules(const LunaDecoderConfig& config, int max_tokens);

  const EncoderFacts& facts() const override { return facts_; }
  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;

 private:
  EncoderFacts facts_;
};

}  // namespace longview::models
