// What tokens cost: operations in closed form, seconds by rates measured at warm-up, bytes exactly.
// A token costs the same at every position.
#pragma once

#include "models/encoder/sequence.h"
#include "models/generation/decoder.h"
#include "models/luna_decoder/context.h"

namespace longview::models {

// Multiply-adds of one token in all layers: linears, logits aside.
double LunaLinearWork(const LunaDecoderConfig& config);
// Weights of the write, both sums and their two reads, per row of P.
double LunaOuterWork(const LunaDecoderConfig& config);
// Elements of biases, activations and norms.
double LunaRowWork(const LunaDecoderConfig& config);

// Of a document in the encoder and in what decoder layers make of it: rows of linears,
// multiply-adds of attention.
double LunaDocumentLinears(const LunaDecoderConfig& config, const EncoderSequence& document);
double LunaDocumentAttention(const LunaDecoderConfig& config, const EncoderSequence& document);

// Measured on this machine by WarmUp; before it, guesses that err on the slow side.
struct LunaRates {
  double step_seconds = 1e-2;       // A step of one token: weights are read.
  double linear_seconds = 1 / 5e9;  // Per multiply-add of many rows.
  double outer_seconds = 1 / 2e9;
  double row_seconds = 1 / 2e8;
};

class LunaCosts final : public DecoderCosts {
 public:
  // `context` outlives the costs.
  explicit LunaCosts(const LunaDecoderContext& context) : context_(context) {}

  // Before serving only.
  void set_rates(const LunaRates& rates) { rates_ = rates; }

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double PrefillSeconds(int64_t t) const override;
  double DecodeSeconds(int64_t t) const override;
  double StepSeconds() const override { return rates_.step_seconds; }
  double DocumentSeconds(const EncoderSequence& document) const;

 private:
  const LunaDecoderContext& context_;
  LunaRates rates_;
};

}  // namespace longview::models
