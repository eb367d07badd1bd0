// What tokens cost: operations in closed form, seconds by rates measured at warm-up, bytes exactly.
// A token costs the same at every position.
#pragma once

#include "models/encoder/sequence.h"
#include "models/generation/decoder_rates.h"
#include "models/luna_decoder/context.h"

namespace longview::models {

// Of a document in the encoder and in what decoder layers make of it: rows of linears,
// multiply-adds of attention.
double LunaDocumentLinears(const LunaDecoderConfig& config, const EncoderSequence& document);
double LunaDocumentAttention(const LunaDecoderConfig& config, const EncoderSequence& document);

class LunaCosts final : public RatedCosts {
 public:
  // `context` outlives the costs.
  explicit LunaCosts(const LunaDecoderContext& context) : context_(context) {}

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double LinearWork() const override;  // Logits aside.
  // Weights of the write, both sums and their two reads, per row of P.
  double AttentionWork(int64_t t) const override;
  double RowWork() const override;
  double DocumentSeconds(const EncoderSequence& document) const;

 private:
  const LunaDecoderContext& context_;
};

}  // namespace longview::models
