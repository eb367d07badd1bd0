#include "models/transformer_ls/decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "models/generation/pass_step.h"
#include "models/torch_guard.h"
#include "models/transformer_ls/cache_layout.h"

namespace longview::models {
namespace {

// What one step of a busy server may carry; beyond it the cache may have to evict earlier.
constexpr int64_t kStepTokens = 4096;
constexpr int kStepSequences = 256;
constexpr int kWarmUpTokens = 8;  // Decoded.

// Decoding reads its cache at the speed of memory: blocks are bf16 wherever a variant reads them
// so, even where its arithmetic is not the fastest.
kernels::Isa Bf16CacheIsa() {
  for (const kernels::Isa isa : {kernels::Isa::kAmxBf16, kernels::Isa::kAvx512Bf16}) {
    if (IsaSupported(isa)) return isa;
  }
  return kernels::BestBf16Isa();
}

}  // namespace

LsDecoder::LsDecoder(const LsLmConfig& config, Checkpoint checkpoint, Compute compute,
                     int max_tokens)
    : config_(config), checkpoint_(std::move(checkpoint)), max_tokens_(max_tokens) {
  context_.config = &config_;
  context_.weights = &weights_;
  context_.compute = compute;
  context_.isa = compute == Compute::kFp32 ? kernels::BestFloatIsa() : Bf16CacheIsa();
  context_.pool = &pool_;
}

absl::StatusOr<std::unique_ptr<LsDecoder>> LsDecoder::Create(const LsLmConfig& config,
                                                             Checkpoint checkpoint,
                                                             const std::string& origin,
                                                             Compute compute, int max_tokens,
                                                             double cache_bytes) {
  std::unique_ptr<LsDecoder> decoder(
      new LsDecoder(config, std::move(checkpoint), compute, max_tokens));
  if (absl::Status status = decoder->Load(origin, cache_bytes); !status.ok()) return status;
  return decoder;
}

absl::Status LsDecoder::Load(const std::string& origin, double cache_bytes) {
  absl::StatusOr<LsLmWeights> weights =
      LoadLsLmWeights(config_, checkpoint_, origin, context_.compute);
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
  return std::make_unique<CachedSequence>(cache_->Open(prompt, kernels::Reuse::kPrefillMade));
}

std::unique_ptr<DecoderStep> LsDecoder::Begin(std::span<const DecoderFeed> feeds) {
  PassStep::Rules rules = {"transformer_ls", config_.vocab};
  if (config_.schedule == LsSchedule::kBlocks) rules.boundary = config_.block;
  return std::make_unique<PassStep>(std::move(rules), feeds, [this](std::vector<TokenRun> runs) {
    return std::make_unique<LsPass>(context_, scratch_, std::move(runs), times_);
  });
}

absl::StatusOr<double> LsDecoder::Time(std::span<const DecoderFeed> feeds) {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<DecoderStep> step = Begin(feeds);
  while (step->Advance()) {
  }
  if (absl::Status status = step->status(); !status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

CacheUse LsDecoder::cache() const {
  return {static_cast<double>(budget_->used()), static_cast<double>(budget_->evictable()),
          static_cast<double>(budget_->capacity())};
}

absl::Status LsDecoder::WarmUp() {
  constexpr int64_t kPrompt = 512;
  int64_t prompt = std::min<int64_t>(kPrompt, max_tokens_ - kWarmUpTokens) / kernels::kBlockSlots *
                   kernels::kBlockSlots;
  const auto capacity = static_cast<double>(budget_->capacity());
  while (prompt > 0 && costs_->StateBytes(0, prompt + kWarmUpTokens, 1) > capacity) {
    prompt -= kernels::kBlockSlots;
  }
  if (prompt <= 0) return absl::OkStatus();
  EncoderTimes* const kept = times_;
  LsRates rates;
  // The first run pays for code generation.
  absl::Status status = Calibrate(prompt, rates);
  if (status.ok()) status = Calibrate(prompt, rates);
  if (status.ok()) costs_->set_rates(rates);
  times_ = kept;
  return status;
}

// Rates from a prompt long enough to fill panels and windows, then single tokens behind it: what
// they take beyond attention is the reading of the weights.
absl::Status LsDecoder::Calibrate(int64_t prompt, LsRates& rates) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < prompt + kWarmUpTokens; ++i) {
    ids.push_back(static_cast<int32_t>((i * 7919 + 11) % config_.vocab));
  }
  const std::span<const int32_t> text(ids);
  CachedSequence sequence{kernels::CacheSequence(cache_.get())};
  EncoderTimes prefill, decode;
  DecoderFeed feed{&sequence, text.first(static_cast<size_t>(prompt)), DecoderPhase::kPrefill,
                   WantedLogits::kLast};
  times_ = &prefill;
  if (absl::Status status = Time({&feed, 1}).status(); !status.ok()) return status;
  double seconds = 0, prefill_work = 0, decode_work = 0;
  for (int64_t t = 0; t < prompt; ++t) prefill_work += AttentionWork(config_, t);
  times_ = &decode;
  feed.phase = DecoderPhase::kDecode;
  for (int64_t t = prompt; t < prompt + kWarmUpTokens; ++t) {
    feed.tokens = text.subspan(static_cast<size_t>(t), 1);
    const absl::StatusOr<double> step = Time({&feed, 1});
    if (!step.ok()) return step.status();
    seconds += *step;
    decode_work += AttentionWork(config_, t);
  }
  const auto rows = static_cast<double>(prompt);
  rates.linear_seconds = prefill.linears / (rows * LinearWork(config_));
  rates.prefill_attention = prefill.attention / prefill_work;
  rates.row_seconds = prefill.rest / (rows * RowWork(config_));
  rates.decode_attention = decode.attention / decode_work;
  rates.step_seconds = (seconds - decode.attention) / kWarmUpTokens;
  return absl::OkStatus();
}

}  // namespace longview::models
