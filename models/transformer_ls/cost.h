// What tokens cost: operations in closed form, seconds by rates measured at warm-up, bytes exactly.
#pragma once

#include "kernels/cache/cache_shape.h"
#include "models/generation/decoder_rates.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/pass.h"

namespace longview::models {

// Multiply-adds of one token in all layers: of linears; of scores, positions and sums at position
// t.
double LsLinearWork(const LsLmConfig& config);
double LsAttentionWork(const LsLmConfig& config, int64_t t);

// Wherever the model computes.
class LsWork : public RatedCosts {
 public:
  // Borrows the configuration.
  LsWork(const LsLmConfig& config, const kernels::CacheShape& shape)
      : config_(config), shape_(shape) {}

  double StateBytes(int64_t shared, int64_t longest, int sequences) const override {
    return static_cast<double>(shape_.SequenceBytes(shared, longest, sequences));
  }
  double LinearWork() const override { return LsLinearWork(config_); }
  double AttentionWork(int64_t t) const override { return LsAttentionWork(config_, t); }
  double RowWork() const override;

 private:
  const LsLmConfig& config_;
  const kernels::CacheShape shape_;
};

// On the host.
class LsCosts final : public LsWork {
 public:
  // Borrowed arguments outlive the costs; WorkspaceBytes reads the cache's shape only.
  LsCosts(const LsContext& context, const kernels::CacheShape& shape, int max_tokens)
      : LsWork(*context.config, shape), context_(context), max_tokens_(max_tokens) {}

  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override;

 private:
  const LsContext& context_;
  const int max_tokens_;
};

}  // namespace longview::models
