// What tokens of the language model cost: operations in closed form, bytes exactly.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/cst/lm_buffers.h"
#include "models/generation/decoder_rates.h"

namespace longview::models {

class CstLmCosts final : public RatedCosts {
 public:
  // Borrowed arguments outlive the costs.
  CstLmCosts(const CstContext& context, const kernels::CacheShape& shape, int max_tokens)
      : context_(context), shape_(shape), max_tokens_(max_tokens) {}

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override;
  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;
  double LinearWork() const override;
  double AttentionWork(int64_t t) const override;
  double RowWork() const override;

 private:
  const CstContext& context_;
  const kernels::CacheShape shape_;
  const int max_tokens_;
};

}  // namespace longview::models
