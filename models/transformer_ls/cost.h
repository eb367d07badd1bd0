// What tokens cost: operations in closed form, seconds by rates measured at warm-up, bytes exactly.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/generation/decoder_rates.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/pass.h"

namespace longview::models {

class LsCosts final : public RatedCosts {
 public:
  // Borrowed arguments outlive the costs; WorkspaceBytes reads the cache's shape only.
  LsCosts(const LsContext& context, const kernels::CacheShape& shape, int max_tokens)
      : context_(context), shape_(shape), max_tokens_(max_tokens) {}

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double LinearWork() const override;
  double AttentionWork(int64_t t) const override;  // Scores, positions and sums.
  double RowWork() const override;

 private:
  const LsContext& context_;
  const kernels::CacheShape shape_;
  const int max_tokens_;
};

}  // namespace longview::models
