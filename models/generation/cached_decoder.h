// A decoder without an encoder whose sequences live in one projection cache and whose steps are
// passes over all layers. A family loads its weights, reserves the cache, and makes the passes.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/cache_room.h"
#include "models/generation/decoder.h"
#include "models/generation/decoder_rates.h"
#include "models/generation/pass_step.h"
#include "models/layers/stopwatch.h"

namespace longview::models {

// See Decoder.
class CachedDecoder : public Decoder {
 public:
  int vocab_size() const final { return rules_.vocab; }
  int max_tokens() const final { return max_tokens_; }
  const DecoderCosts& costs() const final { return *costs_; }
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt, uint64_t space) final;
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) final;
  // Steps that a benchmark times go on adding their seconds.
  absl::Status WarmUp() final;
  CacheUse cache() const final;

  // Steps add their seconds to it from here on; null: no more. For benchmarks.
  void set_times(EncoderTimes* times) { times_ = times; }

  kernels::ProjectionCache& projection_cache() { return *cache_; }

 protected:
  CachedDecoder(PassStep::Rules rules, int max_tokens)
      : rules_(std::move(rules)), max_tokens_(max_tokens) {}

  // Both once, before anything else. RESOURCE_EXHAUSTED if addresses for `room` cannot be had;
  // `origin` begins the message.
  absl::Status Reserve(const kernels::CacheShape& shape, const CacheRoom& room,
                       std::string_view origin,
                       const kernels::ProjectionCache::Options& options = StepCacheOptions());
  // For those whose members the cache's memory needs: once, when they are destroyed.
  void CloseCache() { cache_.reset(); }
  void set_costs(std::unique_ptr<RatedCosts> costs) { costs_ = std::move(costs); }

 private:
  // Borrowed arguments outlive the pass; `times` is added to, unless null. One pass at a time.
  virtual std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                              EncoderTimes* times) = 0;

  const PassStep::Rules rules_;
  const int max_tokens_;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  std::unique_ptr<RatedCosts> costs_;
  ScratchKeeper scratch_;
  EncoderTimes* times_ = nullptr;
};

}  // namespace longview::models
