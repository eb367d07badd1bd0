#include "models/luna_decoder/decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/luna/placement.h"
#include "models/luna_decoder/step.h"

namespace longview::models {
namespace {

constexpr int kWarmUpPrompt = 512, kWarmUpTokens = 8, kWarmUpDocument = 64;

}  // namespace

LunaDecoder::LunaDecoder(const LunaDecoderConfig& config, Checkpoint checkpoint, Compute compute,
                         const Limits& limits)
    : config_(config),
      checkpoint_(std::move(checkpoint)),
      max_tokens_(limits.tokens),
      document_tokens_(limits.document),
      costs_(context_) {
  context_.config = &config_;
  context_.weights = &weights_;
  context_.compute = compute;
  context_.isa = kernels::BestFloatIsa();
  context_.pool = &pool_;
  if (!config_.encoder) return;
  rules_ = std::make_unique<LunaRules>(config_, document_tokens_);
  encoder_context_.config = &*config_.encoder;
  encoder_context_.weights = &encoder_weights_;
  encoder_context_.compute = compute;
  encoder_context_.isa =
      compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
  encoder_context_.pool = &pool_;
  context_.encoder = &encoder_context_;
}

absl::StatusOr<std::unique_ptr<LunaDecoder>> LunaDecoder::Create(const LunaDecoderConfig& config,
                                                                 Checkpoint checkpoint,
                                                                 const std::string& origin,
                                                                 Compute compute,
                                                                 const Limits& limits) {
  std::unique_ptr<LunaDecoder> decoder(
      new LunaDecoder(config, std::move(checkpoint), compute, limits));
  if (absl::Status status = decoder->Load(origin, limits.cache_bytes); !status.ok()) return status;
  return decoder;
}

absl::Status LunaDecoder::Load(const std::string& origin, double cache_bytes) {
  absl::StatusOr<LunaDecoderWeights> weights =
      LoadLunaDecoderWeights(config_, checkpoint_, origin, context_.compute);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  if (config_.encoder) {
    absl::StatusOr<LunaWeights> encoder =
        LoadLunaWeights(*config_.encoder, checkpoint_, origin, context_.compute);
    if (!encoder.ok()) return encoder.status();
    encoder_weights_ = *std::move(encoder);
  }
  budget_ = std::make_unique<kernels::CacheBudget>(static_cast<int64_t>(cache_bytes));
  states_ = LunaStates::Create(config_, budget_.get());
  if (states_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        origin, ": cannot reserve ", static_cast<int64_t>(cache_bytes), " bytes of addresses"));
  }
  context_.states = states_.get();
  return absl::OkStatus();
}

std::unique_ptr<DecoderSequence> LunaDecoder::Open(std::span<const int32_t>) {
  return std::make_unique<LunaSequence>(states_.get());
}

std::unique_ptr<DecoderStep> LunaDecoder::Begin(std::span<const DecoderFeed> feeds) {
  return std::make_unique<LunaStep>(context_, scratch_, feeds, nullptr);
}

double LunaDecoder::parameters() const {
  const double shared = config_.shared_words ? double{1} * config_.vocab * config_.width : 0;
  return weights_.parameters + encoder_weights_.parameters - shared;
}

std::unique_ptr<DecoderSequence> LunaDecoder::Stage::Open(const EncoderSequence& document) {
  return std::make_unique<LunaSequence>(
      decoder_.states_.get(),
      std::make_shared<LunaDocument>(decoder_.context_, document, decoder_.budget_.get()));
}

double LunaDecoder::Stage::DocumentBytes(const EncoderSequence& document) const {
  return static_cast<double>(LunaDocument::Bytes(decoder_.context_, document));
}

// The document holds its buffers itself; panels of linears come on top.
double LunaDecoder::Stage::WorkspaceBytes(const EncoderSequence&) const {
  const LunaConfig& encoder = *decoder_.config_.encoder;
  const int64_t widest = std::max(3 * encoder.width, encoder.width + encoder.intermediate);
  return static_cast<double>(kPanelRows * widest * ElementBytes(decoder_.context_.compute));
}

double LunaDecoder::Stage::EncodeSeconds(const EncoderSequence& document) const {
  return decoder_.costs_.DocumentSeconds(document);
}

CacheUse LunaDecoder::cache() const {
  return {static_cast<double>(budget_->used()), static_cast<double>(budget_->evictable()),
          static_cast<double>(budget_->capacity())};
}

absl::StatusOr<double> LunaDecoder::Time(const DecoderFeed& feed, EncoderTimes* times) {
  const auto start = std::chrono::steady_clock::now();
  LunaStep step(context_, scratch_, {&feed, 1}, times);
  while (step.Advance()) {
  }
  if (absl::Status status = step.status(); !status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

absl::Status LunaDecoder::WarmUp() {
  const int prompt = std::min(kWarmUpPrompt, max_tokens_ - kWarmUpTokens);
  double bytes = static_cast<double>(LunaStates::StateBytes(config_));
  if (config_.encoder) bytes += stage_.DocumentBytes(SampleDocument(kWarmUpDocument));
  const bool room = bytes <= static_cast<double>(budget_->capacity());
  if (prompt <= 0 || !room) return absl::OkStatus();
  LunaRates rates;
  // The first run pays for code generation.
  absl::Status status = Calibrate(prompt, rates);
  if (status.ok()) status = Calibrate(prompt, rates);
  if (status.ok()) costs_.set_rates(rates);
  return status;
}

EncoderSequence LunaDecoder::SampleDocument(int tokens) const {
  const LunaConfig& encoder = *config_.encoder;
  EncoderSequence document;
  for (int64_t i = 0; i < std::min(tokens, document_tokens_); ++i) {
    document.ids.push_back(static_cast<int32_t>((i * 7919 + 11) % encoder.vocab));
  }
  document.roles.assign(document.ids.size(), kernels::kLocalToken);
  PlaceLunaTokens(encoder.pad, document);
  return document;
}

// Rates from a prompt long enough to fill panels, then single tokens behind it: what they take
// beyond the sums is the reading of the weights.
absl::Status LunaDecoder::Calibrate(int prompt, LunaRates& rates) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < prompt + kWarmUpTokens; ++i) {
    ids.push_back(static_cast<int32_t>((i * 7919 + 11) % config_.vocab));
  }
  const std::span<const int32_t> text(ids);
  std::unique_ptr<DecoderSequence> sequence = Open({});
  EncoderTimes prefill, decode;
  if (config_.encoder) {
    sequence = stage_.Open(SampleDocument(kWarmUpDocument));
    DecoderFeed document{.sequence = sequence.get(), .tokens = {}, .wanted = WantedLogits::kNone};
    document.encode = sequence->unencoded();
    if (absl::Status status = Time(document, nullptr).status(); !status.ok()) return status;
  }
  DecoderFeed feed{sequence.get(), text.first(static_cast<size_t>(prompt)), DecoderPhase::kPrefill,
                   WantedLogits::kLast, 0};
  if (absl::Status status = Time(feed, &prefill).status(); !status.ok()) return status;
  double seconds = 0;
  feed.phase = DecoderPhase::kDecode;
  for (int t = prompt; t < prompt + kWarmUpTokens; ++t) {
    feed.tokens = text.subspan(static_cast<size_t>(t), 1);
    const absl::StatusOr<double> step = Time(feed, &decode);
    if (!step.ok()) return step.status();
    seconds += *step;
  }
  rates.linear_seconds = prefill.linears / (prompt * LunaLinearWork(config_));
  rates.outer_seconds = prefill.attention / (prompt * LunaOuterWork(config_));
  rates.row_seconds = prefill.rest / (prompt * LunaRowWork(config_));
  rates.step_seconds = (seconds - decode.attention) / kWarmUpTokens;
  return absl::OkStatus();
}

}  // namespace longview::models
