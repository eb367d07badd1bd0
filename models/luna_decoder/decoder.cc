#include "models/luna_decoder/decoder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/generation/cache_room.h"
#include "models/generation/decoder_rates.h"
#include "models/generation/parted_step.h"
#include "models/luna/placement.h"
#include "models/luna_decoder/step.h"

namespace longview::models {
namespace {

constexpr int kWarmUpDocument = 64;

}  // namespace

LunaDecoder::LunaDecoder(const LunaDecoderConfig& config, Checkpoint checkpoint, Compute compute,
                         const Limits& limits)
    : config_(config),
      checkpoint_(std::move(checkpoint)),
      max_tokens_(limits.tokens),
      context_(config_, weights_, compute, pool_),
      document_tokens_(limits.document),
      costs_(context_) {
  if (!config_.encoder) return;
  rules_ = std::make_unique<LunaRules>(config_, document_tokens_);
  encoder_context_ = LunaContext(*config_.encoder, encoder_weights_, compute, pool_);
  context_.encoder = &encoder_context_;
}

absl::StatusOr<std::unique_ptr<LunaDecoder>> LunaDecoder::Create(const LunaDecoderConfig& config,
                                                                 Checkpoint checkpoint,
                                                                 const std::string& origin,
                                                                 Compute compute,
                                                                 const Limits& limits) {
  std::unique_ptr<LunaDecoder> decoder(
      new LunaDecoder(config, std::move(checkpoint), compute, limits));
  if (absl::Status status = decoder->Load(origin, limits.room); !status.ok()) return status;
  return decoder;
}

absl::Status LunaDecoder::Load(const std::string& origin, const CacheRoom& room) {
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
  budget_ = room.Open();
  states_ = LunaStates::Create(config_, budget_.get());
  if (states_ == nullptr) {
    return NoAddresses(origin, *budget_);
  }
  context_.states = states_.get();
  return absl::OkStatus();
}

std::unique_ptr<DecoderSequence> LunaDecoder::Open(std::span<const int32_t>, uint64_t) {
  return std::make_unique<LunaSequence>(states_.get());
}

std::unique_ptr<DecoderStep> LunaDecoder::Begin(std::span<const DecoderFeed> feeds) {
  return PartedStep::Begin(feeds, [this](std::span<const DecoderFeed> part) {
    return std::make_unique<LunaStep>(context_, scratch_, part, times_);
  });
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

CacheUse LunaDecoder::cache() const { return UseOf(*budget_); }

// A translation's prompt follows a document.
absl::StatusOr<std::unique_ptr<DecoderSequence>> LunaDecoder::OpenSample() {
  if (!config_.encoder) return OpenEmpty();
  std::unique_ptr<DecoderSequence> sequence = stage_.Open(SampleDocument(kWarmUpDocument));
  DecoderFeed document{.sequence = sequence.get(), .tokens = {}, .wanted = WantedLogits::kNone};
  document.encode = sequence->unencoded();
  times_ = nullptr;
  if (absl::Status status = TimeStep(*this, document).status(); !status.ok()) return status;
  return sequence;
}

absl::Status LunaDecoder::WarmUp() {
  auto capacity = static_cast<double>(budget_->Room());
  if (config_.encoder) capacity -= stage_.DocumentBytes(SampleDocument(kWarmUpDocument));
  return CalibrateDecoder({*this, costs_, capacity, [this](EncoderTimes* times) { times_ = times; },
                           [this] { return OpenSample(); }});
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

}  // namespace longview::models
