// What tokens of a stack cost: operations in closed form, seconds by rates measured at warm-up,
// bytes exactly.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/generation/decoder.h"
#include "models/stack/context.h"

namespace longview::models {

// Keys and values of every token that a layer can still see; one strip for all layers.
kernels::CacheShape StackCacheShape(const StackConfig& config, kernels::DType blocks);
// Keys and values of a document, for every layer.
kernels::CacheShape DocumentCacheShape(const StackConfig& config, kernels::DType blocks);

// Multiply-adds of one token in all layers.
double StackLinearWork(const StackConfig& config);
// Scores and sums over the keys that a token at position t reads.
double StackAttentionWork(const StackConfig& config, int64_t t);
// And over a document of `keys` keys.
double StackDocumentWork(const StackConfig& config, int64_t keys);
// Elements of biases, activations and norms.
double StackRowWork(const StackConfig& config);

// Measured on this machine by WarmUp; before it, guesses that err on the slow side.
struct StackRates {
  double step_seconds = 1e-2;       // A step of one token without its attention: weights are read.
  double linear_seconds = 1 / 5e9;  // Per multiply-add of many rows.
  double prefill_attention = 1 / 2e9;
  double decode_attention = 1 / 1e9;
  double row_seconds = 1 / 2e8;
};

class StackCosts final : public DecoderCosts {
 public:
  // `context` outlives the costs. `most_keys` of a document; 0: no encoder.
  StackCosts(const StackContext& context, int max_tokens, int most_keys)
      : context_(context),
        shape_(StackCacheShape(*context.config, context.block_type())),
        max_tokens_(max_tokens),
        most_keys_(most_keys) {}

  // Before serving only.
  void set_rates(const StackRates& rates) { rates_ = rates; }

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double PrefillSeconds(int64_t t) const override;
  double DecodeSeconds(int64_t t) const override;
  double StepSeconds() const override { return rates_.step_seconds; }
  // Of one token that is decoded.
  double AttendSeconds(int64_t keys) const {
    return StackDocumentWork(*context_.config, keys) * rates_.decode_attention;
  }

 private:
  const StackContext& context_;
  const kernels::CacheShape shape_;
  const int max_tokens_;
  const int most_keys_;
  StackRates rates_;
};

}  // namespace longview::models
