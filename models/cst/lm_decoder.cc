#include "models/cst/lm_decoder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "models/cst/lm_cache.h"
#include "models/cst/lm_calls.h"
#include "models/generation/pass_step.h"

namespace longview::models {
namespace {

// What one step of a busy server may carry; beyond it the cache may have to evict earlier.
constexpr int64_t kStepTokens = 4096;
constexpr int kStepSequences = 256;

}  // namespace

CstDecoder::CstDecoder(const CstConfig& config, Checkpoint checkpoint, Compute compute,
                       int max_tokens)
    : config_(config), checkpoint_(std::move(checkpoint)), max_tokens_(max_tokens) {
  CstContext& rows = context_.rows;
  rows.config = &config_;
  rows.weights = &weights_;
  rows.compute = compute;
  rows.isa = compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
  rows.pool = &pool_;
}

absl::StatusOr<std::unique_ptr<CstDecoder>> CstDecoder::Create(const CstConfig& config,
                                                               Checkpoint checkpoint,
                                                               const std::string& origin,
                                                               Compute compute, int max_tokens,
                                                               double cache_bytes) {
  std::unique_ptr<CstDecoder> decoder(
      new CstDecoder(config, std::move(checkpoint), compute, max_tokens));
  if (absl::Status status = decoder->Load(origin, cache_bytes); !status.ok()) return status;
  return decoder;
}

absl::Status CstDecoder::Load(const std::string& origin, double cache_bytes) {
  absl::StatusOr<CstWeights> weights =
      LoadCstWeights(config_, checkpoint_, origin, context_.rows.compute);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  const kernels::CacheShape shape = CstCacheShape(config_, CstBlockType(context_.rows));
  budget_ = std::make_unique<kernels::CacheBudget>(static_cast<int64_t>(cache_bytes));
  kernels::ProjectionCache::Options options;
  options.step_tokens = kStepTokens;
  options.step_sequences = kStepSequences;
  cache_ = kernels::ProjectionCache::Create(shape, options, budget_.get());
  if (cache_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        origin, ": cannot reserve ", static_cast<int64_t>(cache_bytes), " bytes of addresses"));
  }
  context_.cache = cache_.get();
  costs_ = std::make_unique<CstLmCosts>(context_.rows, shape, max_tokens_);
  return absl::OkStatus();
}

int CstDecoder::prefill_granule() const { return CstGranule(config_); }

std::unique_ptr<DecoderSequence> CstDecoder::Open(std::span<const int32_t> prompt) {
  return std::make_unique<CachedSequence>(cache_->Open(prompt, kernels::Reuse::kPrefillMade));
}

std::unique_ptr<DecoderStep> CstDecoder::Begin(std::span<const DecoderFeed> feeds) {
  return std::make_unique<PassStep>(
      PassStep::Rules{"cst", config_.vocab}, feeds, [this](std::vector<TokenRun> runs) {
        return std::make_unique<CstLmPass>(context_, scratch_, std::move(runs), times_);
      });
}

absl::Status CstDecoder::WarmUp() {
  return CalibrateDecoder({*this, *costs_, static_cast<double>(budget_->capacity()),
                           [this](EncoderTimes* times) { times_ = times; }});
}

CacheUse CstDecoder::cache() const {
  return {static_cast<double>(budget_->used()), static_cast<double>(budget_->evictable()),
          static_cast<double>(budget_->capacity())};
}

}  // namespace longview::models
