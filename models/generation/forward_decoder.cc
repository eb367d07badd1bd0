#include "models/generation/forward_decoder.h"

#include <utility>

#include "kernels/cuda/span/launch_shape.h"
#include "models/generation/cached_sequence.h"
#include "models/generation/host_token_pass.h"
#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

PassStep::Rules RulesOf(const TokenModel& model, bool on_device) {
  PassStep::Rules rules = {model.family(), model.vocab()};
  if (on_device) rules = DeviceRules(model.family(), model.vocab());
  rules.boundary = model.boundary();
  return rules;
}

}  // namespace

DeviceTokenTexts TextsOf(const TokenModel& model, int max_tokens) {
  DeviceTokenTexts texts = max_tokens;
  texts.boundary = model.boundary();
  texts.ends = model.ends();
  return texts;
}

ForwardDecoder::ForwardDecoder(std::unique_ptr<TokenModel> model, Compute compute,
                               const Limits& limits, std::unique_ptr<Device> device)
    : model_(std::move(model)),
      rules_(RulesOf(*model_, device != nullptr)),
      max_tokens_(limits.max_tokens),
      host_(model_->Host(device != nullptr ? Compute::kFp32 : compute, pool_)),
      seat_(device != nullptr ? std::make_unique<DecoderSeat>(std::move(device), compute)
                              : nullptr) {
  frame_.compute = compute;
  frame_.tile_rows = seat_ ? kernels::cuda::kDeviceTileRows : host_.tile_rows();
}

absl::StatusOr<std::unique_ptr<ForwardDecoder>> ForwardDecoder::Create(
    std::unique_ptr<TokenModel> model, const std::string& origin, Compute compute,
    const Limits& limits, std::unique_ptr<Device> device) {
  std::unique_ptr<ForwardDecoder> decoder;
  absl::Status loaded;
  const absl::Status guarded = GuardDevice(origin, [&] {
    decoder.reset(new ForwardDecoder(std::move(model), compute, limits, std::move(device)));
    loaded = decoder->Load(origin, limits.room);
  });
  if (!guarded.ok()) return guarded;
  if (!loaded.ok()) return loaded;
  return decoder;
}

absl::Status ForwardDecoder::Load(const std::string& origin, const CacheRoom& room) {
  const kernels::DType blocks = seat_ ? SpanType(frame_.compute) : host_.block_type();
  kernels::CacheShape shape = model_->Shape(blocks);
  kernels::ProjectionCache::Options options = StepCacheOptions();
  absl::Status loaded;
  if (seat_) {
    shape.form = kernels::BlockForm::kRows;
    loaded = LoadOnDevice(origin, shape, room);
    options = DeviceCacheOptions(&seat_->blocks());
  } else {
    loaded = model_->Load(frame_.compute, nullptr);
  }
  if (!loaded.ok()) return loaded;
  model_->Loaded(host_, blocks);
  budget_ = room.Open();
  cache_ = kernels::ProjectionCache::Create(shape, options, budget_.get());
  if (cache_ == nullptr) return NoAddresses(origin, *budget_);
  CountedCosts::Terms terms = {shape,        frame_.compute, seat_ ? nullptr : &host_,
                               vocab_size(), max_tokens(),   model_->granule(),
                               model_->CostliestPosition(max_tokens())};
  const auto count = [this](std::vector<TokenRun> runs, int64_t logit_rows) {
    return model_->Forward({frame_.compute, frame_.tile_rows}, std::move(runs), logit_rows);
  };
  costs_ = std::make_unique<CountedCosts>(count, std::move(terms));
  frame_.cache = cache_.get();
  return absl::OkStatus();
}

absl::Status ForwardDecoder::LoadOnDevice(const std::string& origin,
                                          const kernels::CacheShape& shape,
                                          const CacheRoom& room) {
  const Device::Turn turn(seat_->device());
  const auto load = [&](std::optional<Compute> compute, DeviceStore& store) {
    return model_->Load(compute, &store);
  };
  const auto make = [&](std::vector<TokenRun> runs) {
    return model_->Forward(frame_, std::move(runs), kDeviceLogitRows);
  };
  const DecoderSeat::Claims claims = {vocab_size(), TextsOf(*model_, max_tokens()), {shape}, room,
                                      nullptr};
  return seat_->Load(origin, claims, load, make);
}

std::unique_ptr<DecoderSequence> ForwardDecoder::Open(std::span<const int32_t> prompt,
                                                      uint64_t space) {
  return std::make_unique<CachedSequence>(
      cache_->Open(prompt, kernels::Reuse::kPrefillMade, space));
}

std::unique_ptr<DecoderStep> ForwardDecoder::Begin(std::span<const DecoderFeed> feeds) {
  return std::make_unique<PassStep>(
      rules_, feeds, [this](std::vector<TokenRun> runs) { return MakePass(std::move(runs)); });
}

std::unique_ptr<TokenPass> ForwardDecoder::MakePass(std::vector<TokenRun> runs) {
  const int64_t logit_rows = seat_ ? kDeviceLogitRows : WantedRows(runs);
  auto forward = model_->Forward(frame_, std::move(runs), logit_rows);
  if (seat_) return seat_->Run(std::move(forward), times_);
  return std::make_unique<HostTokenPass>(std::move(forward), host_, scratch_, times_);
}

absl::Status ForwardDecoder::WarmUp() {
  EncoderTimes* const kept = times_;
  const absl::Status status =
      CalibrateDecoder({*this, *costs_, static_cast<double>(budget_->Room()),
                        [this](EncoderTimes* times) { times_ = times; }});
  times_ = kept;
  return status;
}

CacheUse ForwardDecoder::cache() const { return UseOf(*budget_); }

}  // namespace longview::models
