// The encoder of a translation model: how requests become documents, and what is kept of them.
// Immutable once the model is loaded: thread-safe.
#pragma once

#include <memory>
#include <string>

#include "models/generation/passes/source_model.h"
#include "models/luna/weights.h"
#include "models/luna_decoder/weights.h"

namespace longview::models {

// Positions behind the padding's id, masked tokens anywhere, no global attention.
class LunaRules final : public SequenceRules {
 public:
  // REQUIRES: the config has an encoder. `max_tokens` of a document.
  LunaRules(const LunaDecoderConfig& config, int max_tokens);

  const EncoderFacts& facts() const override { return facts_; }
  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;

 private:
  EncoderFacts facts_;
};

class LunaSource final : public SourceModel {
 public:
  // Borrows config and weights, `encoder` the encoder's.
  LunaSource(const LunaDecoderConfig& config, const LunaDecoderWeights& weights,
             const LunaWeights& encoder, int max_tokens)
      : config_(config), weights_(weights), encoder_(encoder), rules_(config, max_tokens) {}

  const SequenceRules& rules() const override { return rules_; }
  int max_tokens() const override { return rules_.facts().max_tokens; }
  int width() const override { return config_.width; }
  kernels::CacheShape Shape(kernels::DType blocks) const override;
  // A state.
  int Slots(const EncoderSequence&) const override { return 1; }
  std::unique_ptr<EncoderPass> Forward(const TokenFrame& frame, Sequences document,
                                       const kernels::CacheSequence* kept,
                                       bool brings_states) const override;

 private:
  const LunaDecoderConfig& config_;
  const LunaDecoderWeights& weights_;
  const LunaWeights& encoder_;
  const LunaRules rules_;
};

}  // namespace longview::models
