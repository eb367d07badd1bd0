#include "models/stack/decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/generation/pass_step.h"
#include "models/stack/pass.h"

namespace longview::models {
namespace {

// What one step of a busy server may carry; beyond it the cache may have to evict earlier.
constexpr int64_t kStepTokens = 4096;
constexpr int kStepSequences = 256;
constexpr int kWarmUpTokens = 8;  // Decoded.

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

absl::StatusOr<double> StackDecoder::Time(const DecoderFeed& feed) {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<DecoderStep> step = Begin({&feed, 1});
  while (step->Advance()) {
  }
  if (absl::Status status = step->status(); !status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

absl::Status StackDecoder::WarmUp() {
  constexpr int64_t kPrompt = 512;
  int64_t prompt = std::min<int64_t>(kPrompt, parts_.max_tokens - kWarmUpTokens) /
                   kernels::kBlockSlots * kernels::kBlockSlots;
  const auto capacity = static_cast<double>(budget_->capacity());
  while (prompt > 0 && costs_->StateBytes(0, prompt + kWarmUpTokens, 1) > capacity) {
    prompt -= kernels::kBlockSlots;
  }
  if (prompt <= 0) return absl::OkStatus();
  StackRates rates;
  // The first run pays for code generation.
  absl::Status status = Calibrate(prompt, rates);
  if (status.ok()) status = Calibrate(prompt, rates);
  times_ = nullptr;
  if (status.ok()) costs_->set_rates(rates);
  return status;
}

// Rates from a prompt long enough to fill panels and windows, then single tokens behind it: what
// they take beyond attention is the reading of the weights.
absl::Status StackDecoder::Calibrate(int64_t prompt, StackRates& rates) {
  const StackConfig& config = parts_.config;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < prompt + kWarmUpTokens; ++i) {
    ids.push_back(static_cast<int32_t>((i * 7919 + 11) % config.vocab));
  }
  const std::span<const int32_t> text(ids);
  CachedSequence sequence{kernels::CacheSequence(cache_.get())};
  EncoderTimes prefill, decode;
  DecoderFeed feed;
  feed.sequence = &sequence;
  feed.tokens = text.first(static_cast<size_t>(prompt));
  times_ = &prefill;
  if (absl::Status status = Time(feed).status(); !status.ok()) return status;
  double seconds = 0, prefill_work = 0, decode_work = 0;
  for (int64_t t = 0; t < prompt; ++t) prefill_work += StackAttentionWork(config, t);
  times_ = &decode;
  feed.phase = DecoderPhase::kDecode;
  for (int64_t t = prompt; t < prompt + kWarmUpTokens; ++t) {
    feed.tokens = text.subspan(static_cast<size_t>(t), 1);
    const absl::StatusOr<double> step = Time(feed);
    if (!step.ok()) return step.status();
    seconds += *step;
    decode_work += StackAttentionWork(config, t);
  }
  const auto rows = static_cast<double>(prompt);
  rates.linear_seconds = prefill.linears / (rows * StackLinearWork(config));
  rates.prefill_attention = prefill.attention / prefill_work;
  rates.row_seconds = prefill.rest / (rows * StackRowWork(config));
  rates.decode_attention = decode.attention / decode_work;
  rates.step_seconds = (seconds - decode.attention) / kWarmUpTokens;
  return absl::OkStatus();
}

}  // namespace longview::models
