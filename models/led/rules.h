// How requests become documents of LED: plain positions, whatever the ids; no global token that a
// request does not name.
// Immutable: thread-safe.
#pragma once

#include <string>

#include "models/encoder/rules.h"
#include "models/led/config.h"

namespace longview::models {

// Facts of the encoder, for the rules and for `--check`.
EncoderFacts LedFacts(const LedConfig& config);

class LedRules final : public SequenceRules {
 public:
  explicit LedRules(const LedConfig& config) : facts_(LedFacts(config)) {}

  const EncoderFacts& facts() const override { return facts_; }
  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;

 private:
  const EncoderFacts facts_;
};

}  // namespace longview::models
