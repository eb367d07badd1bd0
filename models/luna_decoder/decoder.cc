#include "models/luna_decoder/decoder.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/span/launch_shape.h"
#include "models/generation/decoder_rates.h"
#include "models/generation/document_step.h"
#include "models/generation/host_token_pass.h"
#include "models/luna/placement.h"
#include "models/luna_decoder/pass.h"

namespace longview::models {
namespace {

constexpr int kWarmUpDocument = 64;

}  // namespace

LunaDecoder::LunaDecoder(const LunaDecoderConfig& config, Checkpoint checkpoint, Compute compute,
                         const Limits& limits, std::unique_ptr<Device> device)
    : config_(config),
      checkpoint_(std::move(checkpoint)),
      limits_(limits),
      host_(device != nullptr ? Compute::kFp32 : compute, pool_),
      seat_(device != nullptr ? std::make_unique<DecoderSeat>(std::move(device), compute)
                              : nullptr) {
  if (config_.encoder) rules_ = std::make_unique<LunaRules>(config_, limits_.document);
  context_.config = &config_;
  context_.weights = &weights_;
  context_.encoder = &encoder_weights_;
  context_.frame.compute = compute;
  context_.frame.tile_rows = seat_ ? kernels::cuda::kDeviceTileRows : host_.tile_rows();
  context_.host = &host_;
  context_.seat = seat_.get();
}

absl::StatusOr<std::unique_ptr<LunaDecoder>> LunaDecoder::Create(
    const LunaDecoderConfig& config, Checkpoint checkpoint, const std::string& origin,
    Compute compute, const Limits& limits, std::unique_ptr<Device> device) {
  std::unique_ptr<LunaDecoder> decoder;
  absl::Status loaded;
  const absl::Status guarded = GuardDevice(origin, [&] {
    decoder.reset(
        new LunaDecoder(config, std::move(checkpoint), compute, limits, std::move(device)));
    loaded = decoder->Load(origin);
  });
  if (!guarded.ok()) return guarded;
  if (!loaded.ok()) return loaded;
  return decoder;
}

absl::Status LunaDecoder::Load(const std::string& origin) {
  const absl::Status loaded = seat_ ? LoadOnDevice(origin)
                                    : LoadWeights(origin, context_.frame.compute, nullptr);
  if (!loaded.ok()) return loaded;
  CountCosts();
  const kernels::ProjectionCache::Options options =
      seat_ ? DeviceCacheOptions(&seat_->blocks()) : StepCacheOptions();
  budget_ = limits_.room.Open();
  context_.budget = budget_.get();
  const auto create = [&](kernels::CacheShape shape) {
    if (seat_) shape.form = kernels::BlockForm::kRows;
    return kernels::ProjectionCache::Create(shape, options, budget_.get());
  };
  states_ = create(LunaSequenceShape(config_));
  if (config_.encoder) documents_ = create(LunaDocumentShape(config_));
  if (states_ == nullptr || (config_.encoder && documents_ == nullptr)) {
    return NoAddresses(origin, *budget_);
  }
  context_.frame.cache = states_.get();
  context_.documents = documents_.get();
  return absl::OkStatus();
}

absl::Status LunaDecoder::LoadWeights(const std::string& origin, std::optional<Compute> compute,
                                      DeviceStore* store) {
  absl::StatusOr<LunaDecoderWeights> weights =
      LoadLunaDecoderWeights(config_, checkpoint_, origin, compute, store);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  if (!config_.encoder) return absl::OkStatus();
  absl::StatusOr<LunaWeights> encoder =
      LoadLunaWeights(*config_.encoder, checkpoint_, origin, compute, store);
  if (encoder.ok()) encoder_weights_ = *std::move(encoder);
  return encoder.status();
}

absl::Status LunaDecoder::LoadOnDevice(const std::string& origin) {
  const Device::Turn turn(seat_->device());
  const auto load = [&](std::optional<Compute> compute, DeviceStore& store) {
    return LoadWeights(origin, compute, &store);
  };
  const auto make = [&](std::vector<TokenRun> runs) {
    return std::make_unique<LunaTokenPass>(context_, std::move(runs), kDeviceLogitRows);
  };
  DecoderSeat::Claims claims = {
      config_.vocab, limits_.tokens, {LunaSequenceShape(config_)}, limits_.room, nullptr};
  if (config_.encoder) {
    claims.caches.push_back(LunaDocumentShape(config_));
    claims.document = [&] { return LunaDocument::MostBytes(context_, limits_.document); };
  }
  for (kernels::CacheShape& shape : claims.caches) shape.form = kernels::BlockForm::kRows;
  return seat_->Load(origin, claims, load, make);
}

void LunaDecoder::CountCosts() {
  CountedCosts::Terms terms;
  terms.shape = LunaSequenceShape(config_);
  if (seat_) terms.shape.form = kernels::BlockForm::kRows;
  terms.compute = context_.frame.compute;
  terms.host = seat_ ? nullptr : &host_;
  terms.vocab = config_.vocab;
  terms.max_tokens = limits_.tokens;
  terms.granule = kGranule;
  terms.costliest = limits_.tokens - 1;
  const auto count = [counted = context_](std::vector<TokenRun> runs, int64_t logit_rows) {
    return std::make_unique<LunaTokenPass>(counted, std::move(runs), logit_rows);
  };
  costs_ = std::make_unique<CountedCosts>(count, std::move(terms));
}

std::unique_ptr<DecoderSequence> LunaDecoder::Open(std::span<const int32_t>, uint64_t) {
  return std::make_unique<DocumentSequence>(kernels::CacheSequence(states_.get()), nullptr);
}

std::unique_ptr<DecoderStep> LunaDecoder::Begin(std::span<const DecoderFeed> feeds) {
  const PassStep::Rules rules =
      seat_ ? DeviceRules("luna", config_.vocab) : PassStep::Rules{"luna", config_.vocab};
  return std::make_unique<DocumentStep>(
      rules, feeds, [this](std::vector<TokenRun> runs) { return MakePass(std::move(runs)); });
}

std::unique_ptr<TokenPass> LunaDecoder::MakePass(std::vector<TokenRun> runs) {
  const int64_t logit_rows = seat_ ? kDeviceLogitRows : WantedRows(runs);
  auto pass = std::make_unique<LunaTokenPass>(context_, std::move(runs), logit_rows);
  if (seat_) return seat_->Run(std::move(pass), times_);
  return std::make_unique<HostTokenPass>(std::move(pass), host_, scratch_, times_);
}

double LunaDecoder::parameters() const {
  const double shared = config_.shared_words ? double{1} * config_.vocab * config_.width : 0;
  return weights_.parameters + encoder_weights_.parameters - shared;
}

double LunaDecoder::memory_bytes() const {
  return seat_ ? seat_->memory_bytes() : weights_.memory_bytes + encoder_weights_.memory_bytes;
}

std::unique_ptr<DecoderSequence> LunaDecoder::Stage::Open(const EncoderSequence& document) {
  return std::make_unique<DocumentSequence>(
      kernels::CacheSequence(decoder_.states_.get()),
      std::make_shared<LunaDocument>(decoder_.context_, document, decoder_.times_));
}

DocumentCost LunaDecoder::Stage::Cost(const EncoderSequence& document) const {
  const LunaDocument::Need need = LunaDocument::NeedOf(decoder_.context_, document);
  const DecoderRates& rates = decoder_.costs_->rates();
  const double seconds = need.work.linear * rates.linear_seconds +
                         need.work.attention * rates.prefill_attention +
                         need.work.rows * rates.row_seconds;
  return {need.bytes, need.workspace_bytes, seconds};
}

CacheUse LunaDecoder::cache() const { return UseOf(*budget_); }

// A translation's prompt follows a document.
absl::StatusOr<std::unique_ptr<DecoderSequence>> LunaDecoder::OpenSample() {
  if (!config_.encoder) return OpenEmpty();
  times_ = nullptr;
  std::unique_ptr<DecoderSequence> sequence = stage_.Open(SampleDocument());
  DecoderFeed document{.sequence = sequence.get(), .tokens = {}, .wanted = WantedLogits::kNone};
  document.encode = sequence->unencoded();
  if (absl::Status status = TimeStep(*this, document).status(); !status.ok()) return status;
  return sequence;
}

absl::Status LunaDecoder::WarmUp() {
  auto capacity = static_cast<double>(budget_->Room());
  if (config_.encoder) capacity -= stage_.Cost(SampleDocument()).bytes;
  return CalibrateDecoder({*this, *costs_, capacity,
                           [this](EncoderTimes* times) { times_ = times; },
                           [this] { return OpenSample(); }});
}

EncoderSequence LunaDecoder::SampleDocument() const {
  const LunaConfig& encoder = *config_.encoder;
  EncoderSequence document;
  for (int64_t i = 0; i < std::min(kWarmUpDocument, limits_.document); ++i) {
    document.ids.push_back(static_cast<int32_t>((i * 7919 + 11) % encoder.vocab));
  }
  document.roles.assign(document.ids.size(), kernels::kLocalToken);
  PlaceLunaTokens(encoder.pad, document);
  return document;
}

}  // namespace longview::models
