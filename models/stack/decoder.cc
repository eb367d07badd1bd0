#include "models/stack/decoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/generation/decoder_rates.h"
#include "models/generation/pass_step.h"
#include "models/stack/pass.h"

namespace longview::models {
namespace {

// What one step of a busy server may carry; beyond it the cache may have to evict earlier.
constexpr int64_t kStepTokens = 4096;
constexpr int kStepSequences = 256;

}  // namespace

StackDecoder::StackDecoder(Parts parts) : parts_(std::move(parts)), tables_(parts_.config) {
  context_.config = &parts_.config;
  context_.weights = &parts_.weights;
  context_.tables = &tables_;
  context_.compute = parts_.compute;
  context_.isa =
      parts_.compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
  context_.pool = &pool_;
}

absl::StatusOr<std::unique_ptr<StackDecoder>> StackDecoder::Create(Parts parts) {
  std::unique_ptr<StackDecoder> decoder(new StackDecoder(std::move(parts)));
  StackContext& context = decoder->context_;
  const auto bytes = static_cast<int64_t>(decoder->parts_.cache_bytes);
  decoder->budget_ = std::make_unique<kernels::CacheBudget>(bytes);
  kernels::ProjectionCache::Options options;
  options.step_tokens = kStepTokens;
  options.step_sequences = kStepSequences;
  decoder->cache_ = kernels::ProjectionCache::Create(
      StackCacheShape(*context.config, context.block_type()), options, decoder->budget_.get());
  if (decoder->cache_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(context.config->family, ": cannot reserve ", bytes, " bytes of addresses"));
  }
  context.cache = decoder->cache_.get();
  decoder->costs_ = std::make_unique<StackCosts>(context, decoder->parts_.max_tokens, 0);
  return decoder;
}

int StackDecoder::prefill_granule() const { return static_cast<int>(kernels::kBlockSlots); }

std::unique_ptr<DecoderSequence> StackDecoder::Open(std::span<const int32_t> prompt) {
  return std::make_unique<CachedSequence>(cache_->Open(prompt, kernels::Reuse::kPrefillMade));
}

std::unique_ptr<DecoderStep> StackDecoder::Begin(std::span<const DecoderFeed> feeds) {
  return std::make_unique<PassStep>(PassStep::Rules{parts_.config.family, parts_.config.vocab},
                                    feeds, [this](std::vector<TokenRun> runs) {
                                      return std::make_unique<StackPass>(context_, scratch_,
                                                                         std::move(runs), times_);
                                    });
}

CacheUse StackDecoder::cache() const {
  return {static_cast<double>(budget_->used()), static_cast<double>(budget_->evictable()),
          static_cast<double>(budget_->capacity())};
}

absl::Status StackDecoder::WarmUp() {
  return CalibrateDecoder({*this, *costs_, static_cast<double>(budget_->capacity()),
                           [this](EncoderTimes* times) { times_ = times; }});
}

}  // namespace longview::models
