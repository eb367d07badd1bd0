#include "models/transformer_ls/decoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "models/generation/decoder_rates.h"
#include "models/generation/pass_step.h"
#include "models/torch_guard.h"
#include "models/transformer_ls/cache_layout.h"

namespace longview::models {
namespace {

// What one step of a busy server may carry; beyond it the cache may have to evict earlier.
constexpr int64_t kStepTokens = 4096;
constexpr int kStepSequences = 256;

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

CacheUse LsDecoder::cache() const {
  return {static_cast<double>(budget_->used()), static_cast<double>(budget_->evictable()),
          static_cast<double>(budget_->capacity())};
}

// Steps that a benchmark times go on adding their seconds.
absl::Status LsDecoder::WarmUp() {
  EncoderTimes* const kept = times_;
  const absl::Status status =
      CalibrateDecoder({*this, *costs_, static_cast<double>(budget_->capacity()),
                        [this](EncoderTimes* times) { times_ = times; }});
  times_ = kept;
  return status;
}

}  // namespace longview::models
