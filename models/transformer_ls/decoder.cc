#include "models/transformer_ls/decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "models/torch_guard.h"
#include "models/transformer_ls/cache_layout.h"
#include "models/transformer_ls/step.h"

namespace longview::models {
namespace {

// What one step of a busy server may carry; beyond it the cache may have to evict earlier.
constexpr int64_t kStepTokens = 4096;
constexpr int kStepSequences = 256;

}  // namespace

LsDecoder::LsDecoder(const LsLmConfig& config, Compute compute, int max_tokens)
    : config_(config), max_tokens_(max_tokens) {
  context_.config = &config_;
  context_.weights = &weights_;
  context_.compute = compute;
  context_.isa = compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
  context_.pool = &pool_;
}

absl::StatusOr<std::unique_ptr<LsDecoder>> LsDecoder::Create(const LsLmConfig& config,
                                                             const Checkpoint& checkpoint,
                                                             const std::string& origin,
                                                             Compute compute, int max_tokens,
                                                             double cache_bytes) {
  std::unique_ptr<LsDecoder> decoder(new LsDecoder(config, compute, max_tokens));
  if (absl::Status status = decoder->Load(checkpoint, origin, cache_bytes); !status.ok()) {
    return status;
  }
  return decoder;
}

absl::Status LsDecoder::Load(const Checkpoint& checkpoint, const std::string& origin,
                             double cache_bytes) {
  absl::StatusOr<LsLmWeights> weights =
      LoadLsLmWeights(config_, checkpoint, origin, context_.compute);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  absl::Status status = GuardTorch(origin, [&] {
    tables_ = std::make_unique<RelativeTables>(config_, weights_, context_.compute,
                                               MostSegmentIds(config_, max_tokens_), pool_);
    if (config_.zero_memory) {
      zero_ = std::make_unique<ZeroBlocks>(config_, weights_, context_.block_type());
    }
  });
  if (!status.ok()) return status;
  const kernels::CacheShape shape = LsCacheShape(config_, context_.block_type());
  budget_ = std::make_unique<kernels::CacheBudget>(static_cast<int64_t>(cache_bytes));
  kernels::ProjectionCache::Options options;
  options.step_tokens = kStepTokens;
  options.step_sequences = kStepSequences;
  cache_ = kernels::ProjectionCache::Create(shape, options, budget_.get());
  if (cache_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        origin, ": cannot reserve ", static_cast<int64_t>(cache_bytes), " bytes of addresses"));
  }
  context_.tables = tables_.get();
  context_.zero = zero_.get();
  context_.cache = cache_.get();
  costs_ = std::make_unique<LsCosts>(context_, shape, max_tokens_);
  return absl::OkStatus();
}

std::unique_ptr<DecoderSequence> LsDecoder::Open(std::span<const int32_t> prompt) {
  return std::make_unique<LsSequence>(cache_->Open(prompt, kernels::Reuse::kPrefillMade));
}

std::unique_ptr<DecoderStep> LsDecoder::Begin(std::span<const DecoderFeed> feeds) {
  return std::make_unique<LsStep>(context_, scratch_, feeds, times_);
}

absl::StatusOr<double> LsDecoder::Time(std::span<const DecoderFeed> feeds) {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<DecoderStep> step = Begin(feeds);
  while (step->Advance()) {
  }
  if (absl::Status status = step->status(); !status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Rates from a prompt long enough to fill panels and windows, then single tokens behind it: what
// they take beyond attention and rows is the reading of the weights. The first run of each pays
// for code generation.
absl::Status LsDecoder::WarmUp() {
  constexpr int64_t kPrompt = 512;
  constexpr int kRuns = 2, kTokens = 8;
  int64_t prompt = std::min<int64_t>(kPrompt, max_tokens_ - kTokens) / kernels::kBlockSlots *
                   kernels::kBlockSlots;
  while (prompt > 0 &&
         costs_->StateBytes(0, prompt + kTokens, 1) > static_cast<double>(budget_->capacity())) {
    prompt -= kernels::kBlockSlots;
  }
  if (prompt <= 0) return absl::OkStatus();
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < prompt + kTokens; ++i) {
    ids.push_back(static_cast<int32_t>((i * 7919 + 11) % config_.vocab));
  }
  LsTimes* const kept = std::exchange(times_, nullptr);
  absl::Status status;
  for (int run = 0; run < kRuns && status.ok(); ++run) {
    LsTimes prefill, decode;
    LsSequence sequence{kernels::CacheSequence(cache_.get())};
    const std::span<const int32_t> text(ids);
    const auto time = [&](int64_t first, int64_t count, DecoderPhase phase, LsTimes& times) {
      const DecoderFeed feed{&sequence,
                             text.subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
                             phase, WantedLogits::kLast};
      times_ = &times;
      const absl::StatusOr<double> seconds = Time({&feed, 1});
      if (!seconds.ok()) status = seconds.status();
      return seconds.value_or(0.0);
    };
    time(0, prompt, DecoderPhase::kPrefill, prefill);
    double seconds = 0, prefill_work = 0, decode_work = 0;
    for (int64_t t = 0; t < prompt; ++t) prefill_work += AttentionWork(config_, t);
    for (int64_t t = prompt; t < prompt + kTokens && status.ok(); ++t) {
      seconds += time(t, 1, DecoderPhase::kDecode, decode);
      decode_work += AttentionWork(config_, t);
    }
    LsRates rates;
    const auto rows = static_cast<double>(prompt);
    rates.linear_seconds = prefill.linears / (rows * LinearWork(config_));
    rates.prefill_attention = prefill.prefill_attention / prefill_work;
    rates.row_seconds = prefill.rest / (rows * RowWork(config_));
    rates.decode_attention = decode.decode_attention / decode_work;
    rates.step_seconds = (seconds - decode.decode_attention) / kTokens;
    if (status.ok()) costs_->set_rates(rates);
  }
  times_ = kept;
  return status;
}

}  // namespace longview::models
