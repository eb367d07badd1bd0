// The autoregressive Composite Slice Transformer as a Decoder: sequences over kernels/cache, steps
// of one or more passes.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/cst/lm_cost.h"
#include "models/cst/lm_pass.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/decoder.h"
#include "models/parallel.h"

namespace longview::models {

class CstDecoder final : public Decoder {
 public:
  // Errors name the tensor, or say that `cache_bytes` of addresses cannot be had; `origin` begins
  // messages.
  static absl::StatusOr<std::unique_ptr<CstDecoder>> Create(const CstConfig& config,
                                                            Checkpoint checkpoint,
                                                            const std::string& origin,
                                                            Compute compute, int max_tokens,
                                                            double cache_bytes);

  int vocab_size() const override { return config_.vocab; }
  int max_tokens() const override { return max_tokens_; }
  int prefill_granule() const override;
  const DecoderCosts& costs() const override { return *costs_; }

  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt) override;
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override;

  // Runs a few shapes and fixes the rates of costs().
  absl::Status WarmUp() override;
  CacheUse cache() const override;

  // Steps add their seconds to it from here on; null: no more. For calibration and benchmarks.
  void set_times(EncoderTimes* times) { times_ = times; }

  const CstConfig& config() const { return config_; }
  const CstWeights& weights() const { return weights_; }

 private:
  CstDecoder(const CstConfig& config, Checkpoint checkpoint, Compute compute, int max_tokens);
  absl::Status Load(const std::string& origin, double cache_bytes);

  const CstConfig config_;
  const Checkpoint checkpoint_;
  const int max_tokens_;
  TorchParallelFor pool_;
  CstWeights weights_;
  CstLmContext context_;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  std::unique_ptr<CstLmCosts> costs_;
  ScratchKeeper scratch_;
  EncoderTimes* times_ = nullptr;
};

}  // namespace longview::models
