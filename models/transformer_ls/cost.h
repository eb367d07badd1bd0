// What tokens cost: operations in closed form, seconds by rates measured at warm-up, bytes exactly.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/generation/decoder.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/pass.h"

namespace longview::models {

// Multiply-adds of one token in all layers.
double LinearWork(const LsLmConfig& config);
// Scores, positions and sums over the keys that a token at position t sees.
double AttentionWork(const LsLmConfig& config, int64_t t);
// Elements of biases, activations, norms and pooling.
double RowWork(const LsLmConfig& config);

// Measured on this machine by WarmUp; before it, guesses that err on the slow side.
struct LsRates {
  double step_seconds = 1e-2;       // A step of one token without its attention: weights are read.
  double linear_seconds = 1 / 5e9;  // Per multiply-add of many rows.
  double prefill_attention = 1 / 2e9;
  double decode_attention = 1 / 1e9;
  double row_seconds = 1 / 2e8;
};

class LsCosts final : public DecoderCosts {
 public:
  // Borrowed arguments outlive the costs; WorkspaceBytes reads the cache's shape only.
  LsCosts(const LsContext& context, const kernels::CacheShape& shape, int max_tokens)
      : context_(context), shape_(shape), max_tokens_(max_tokens) {}

  // Before serving only.
  void set_rates(const LsRates& rates) { rates_ = rates; }

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double PrefillSeconds(int64_t t) const override;
  double DecodeSeconds(int64_t t) const override;
  double StepSeconds() const override { return rates_.step_seconds; }

 private:
  const LsContext& context_;
  const kernels::CacheShape shape_;
  const int max_tokens_;
  LsRates rates_;
};

}  // namespace longview::models
