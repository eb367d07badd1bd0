// Shapes of a stack's caches, and the cost of its tokens behind an encoder: operations in closed
// form, seconds by rates measured at warm-up, bytes exactly, by counting the forward.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/generation/decoder_rates.h"
#include "models/layers/compute_context.h"
#include "models/stack/context.h"

namespace longview::models {

// Keys and values of every token that a layer can still see; one strip for all layers.
kernels::CacheShape StackCacheShape(const StackConfig& config, kernels::DType blocks);
// Keys and values of a document, for every layer.
kernels::CacheShape DocumentCacheShape(const StackConfig& config, kernels::DType blocks);

// Scores and sums over a document of `keys` keys, of one token in all layers.
double StackDocumentWork(const StackConfig& config, int64_t keys);

// Limits by which a stack's steps are priced.
struct StackRoom {
  // Where the stack runs; null: on a device, whose memory is taken when the model loads. What is
  // left then are rows of logits, on the host.
  const ComputeContext* host = nullptr;
  int max_tokens = 0;
  int most_keys = 0;  // The longest document; 0: no encoder.
};

class StackCosts final : public RatedCosts {
 public:
  // `context` outlives the costs.
  StackCosts(const StackContext& context, const kernels::CacheShape& shape, const StackRoom& room)
      : context_(context), shape_(shape), room_(room) {}

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
  const StackRoom room_;
};

}  // namespace longview::models
