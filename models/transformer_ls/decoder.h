// Transformer-LS as a Decoder: sequences over the projection cache, steps of one or more passes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/decoder.h"
#include "models/parallel.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/cost.h"
#include "models/transformer_ls/pass.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {

class LsDecoder final : public Decoder {
 public:
  // Errors name the tensor, or say that `cache_bytes` of addresses cannot be had; `origin` begins
  // messages.
  static absl::StatusOr<std::unique_ptr<LsDecoder>> Create(const LsLmConfig& config,
                                                           Checkpoint checkpoint,
                                                           const std::string& origin,
                                                           Compute compute, int max_tokens,
                                                           double cache_bytes);

  int vocab_size() const override { return config_.vocab; }
  int max_tokens() const override { return max_tokens_; }
  int prefill_granule() const override { return config_.granule(); }
  const DecoderCosts& costs() const override { return *costs_; }

  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt) override;
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override;

  // Runs a few shapes and fixes the rates of costs().
  absl::Status WarmUp() override;
  CacheUse cache() const override;

  // Steps add their seconds to it from here on; null: no more. For benchmarks.
  void set_times(EncoderTimes* times) { times_ = times; }

  const LsLmConfig& config() const { return config_; }
  const LsLmWeights& weights() const { return weights_; }
  const LsContext& context() const { return context_; }
  kernels::ProjectionCache& projection_cache() { return *cache_; }

 private:
  LsDecoder(const LsLmConfig& config, Checkpoint checkpoint, Compute compute, int max_tokens);
  absl::Status Load(const std::string& origin, double cache_bytes);

  const LsLmConfig config_;
  const Checkpoint checkpoint_;
  const int max_tokens_;
  TorchParallelFor pool_;
  LsLmWeights weights_;
  LsContext context_;
  std::unique_ptr<RelativeTables> tables_;
  std::unique_ptr<ZeroBlocks> zero_;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  std::unique_ptr<LsCosts> costs_;
  ScratchKeeper scratch_;
  EncoderTimes* times_ = nullptr;
};

}  // namespace longview::models
