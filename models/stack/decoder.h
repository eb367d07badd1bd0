// A stack without an encoder as a Decoder: language models of one stream.
#pragma once

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/decoder.h"
#include "models/layers/stopwatch.h"
#include "models/parallel.h"
#include "models/stack/cost.h"

namespace longview::models {

class StackDecoder final : public Decoder {
 public:
  struct Parts {
    StackConfig config;
    StackWeights weights;
    std::unique_ptr<const Checkpoint> checkpoint;  // Whose tables the weights read.
    Compute compute = Compute::kFp32;
    int max_tokens = 0;
    double cache_bytes = 0;
  };
  // RESOURCE_EXHAUSTED if `cache_bytes` of addresses cannot be had.
  static absl::StatusOr<std::unique_ptr<StackDecoder>> Create(Parts parts);

  int vocab_size() const override { return parts_.config.vocab; }
  int max_tokens() const override { return parts_.max_tokens; }
  int prefill_granule() const override;
  const DecoderCosts& costs() const override { return *costs_; }
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt) override;
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override;
  absl::Status WarmUp() override;
  CacheUse cache() const override;

 private:
  explicit StackDecoder(Parts parts);

  const Parts parts_;
  TorchParallelFor pool_;
  const DistanceTables tables_;
  StackContext context_;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  std::unique_ptr<StackCosts> costs_;
  ScratchKeeper scratch_;
  EncoderTimes* times_ = nullptr;  // While WarmUp measures.
};

}  // namespace longview::models
