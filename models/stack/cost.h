// The cost of a stack's tokens: operations in closed form, seconds by rates measured at warm-up,
// bytes exactly.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/generation/decoder_rates.h"
#include "models/stack/context.h"

namespace longview::models {

// Keys and values of every token that a layer can still see; one strip for all layers.
kernels::CacheShape StackCacheShape(const StackConfig& config, kernels::DType blocks);
// Keys and values of a document, for every layer.
kernels::CacheShape DocumentCacheShape(const StackConfig& config, kernels::DType blocks);

// Scores and sums over a document of `keys` keys, of one token in all layers.
double StackDocumentWork(const StackConfig& config, int64_t keys);

class StackCosts final : public RatedCosts {
 public:
  // `context` outlives the costs. `most_keys` of a document; 0: no encoder.
  StackCosts(const StackContext& context, int max_tokens, int most_keys)
      : context_(context),
        shape_(StackCacheShape(*context.config, context.block_type())),
        max_tokens_(max_tokens),
        most_keys_(most_keys) {}

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double LinearWork() const override;
  double AttentionWork(int64_t t) const override;
  double RowWork() const override;
  // Seconds of attention for one decoded token.
  double AttendSeconds(int64_t keys) const {
    return StackDocumentWork(*context_.config, keys) * rates().decode_attention;
  }

 private:
  const StackContext& context_;
  const kernels::CacheShape shape_;
  const int max_tokens_;
  const int most_keys_;
};

}  // namespace longview::models
