// The cost of tokens: operations in closed form, seconds by rates measured at warm-up, bytes
// exactly, by counting the forward.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/generation/decoder_rates.h"
#include "models/layers/compute_context.h"
#include "models/transformer_ls/context.h"

namespace longview::models {

class LsCosts final : public RatedCosts {
 public:
  // Borrowed arguments outlive the costs. `host` null: on a device, whose memory is taken when the
  // model loads; what is left then are rows of logits, on the host.
  LsCosts(const LsContext& context, const kernels::CacheShape& shape, const ComputeContext* host,
          int max_tokens)
      : context_(context), shape_(shape), host_(host), max_tokens_(max_tokens) {}

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override {
    return static_cast<double>(shape_.SequenceBytes(shared, longest, sequences));
  }
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double LinearWork() const override;
  double AttentionWork(int64_t t) const override;
  double RowWork() const override;

 private:
  const LsContext& context_;
  const kernels::CacheShape shape_;
  const ComputeContext* const host_;
  const int max_tokens_;
};

}  // namespace longview::models
