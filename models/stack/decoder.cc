#include "models/stack/decoder.h"

#include <utility>

#include "kernels/cuda/span/launch_shape.h"
#include "models/generation/host_token_pass.h"
#include "models/layers/span_rows.h"
#include "models/stack/cost.h"
#include "models/stack/pass.h"

namespace longview::models {
namespace {

PassStep::Rules RulesOf(const StackConfig& config, bool on_device) {
  if (on_device) return DeviceRules(config.family, config.vocab);
  return {config.family, config.vocab};
}

}  // namespace

StackDecoder::StackDecoder(Parts parts, std::unique_ptr<Device> device)
    : CachedDecoder(RulesOf(parts.config, device != nullptr), parts.max_tokens),
      parts_(std::move(parts)),
      host_(device != nullptr ? Compute::kFp32 : parts_.compute, pool_),
      seat_(device != nullptr ? std::make_unique<DecoderSeat>(std::move(device), parts_.compute)
                              : nullptr) {
  context_.config = &parts_.config;
  context_.weights = &weights_;
  context_.compute = parts_.compute;
  context_.tile_rows = seat_ ? kernels::cuda::kDeviceTileRows : host_.tile_rows();
}

absl::StatusOr<std::unique_ptr<StackDecoder>> StackDecoder::Create(Parts parts,
                                                                   const std::string& origin,
                                                                   std::unique_ptr<Device> device) {
  const bool on_device = device != nullptr;
  std::unique_ptr<StackDecoder> decoder;
  absl::Status loaded;
  const absl::Status guarded = GuardDevice(origin, [&] {
    decoder.reset(new StackDecoder(std::move(parts), std::move(device)));
    loaded = on_device ? decoder->LoadOnDevice(origin) : decoder->Load(origin);
  });
  if (!guarded.ok()) return guarded;
  if (!loaded.ok()) return loaded;
  return decoder;
}

absl::Status StackDecoder::Load(const std::string& origin) {
  absl::StatusOr<StackWeights> weights = parts_.load(parts_.compute, nullptr);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  context_.few_rows = weights_.packs_rows();
  const kernels::CacheShape shape = StackCacheShape(parts_.config, host_.block_type());
  if (absl::Status status = Reserve(shape, parts_.room, origin); !status.ok()) return status;
  context_.cache = &projection_cache();
  set_costs(std::make_unique<StackCosts>(context_, shape, StackRoom{&host_, max_tokens()}));
  return absl::OkStatus();
}

absl::Status StackDecoder::LoadOnDevice(const std::string& origin) {
  const Device::Turn turn(seat_->device());
  kernels::CacheShape shape = StackCacheShape(parts_.config, SpanType(parts_.compute));
  shape.form = kernels::BlockForm::kRows;
  context_.few_rows = true;
  const auto load = [&](std::optional<Compute> compute, DeviceStore& store) {
    absl::StatusOr<StackWeights> weights = parts_.load(compute, &store);
    if (weights.ok()) weights_ = *std::move(weights);
    return weights.status();
  };
  const auto make = [&](std::vector<TokenRun> runs) {
    return std::make_unique<StackPass>(context_, std::move(runs), kDeviceLogitRows);
  };
  const DecoderSeat::Claims claims = {
      parts_.config.vocab, max_tokens(), {shape}, parts_.room, nullptr};
  absl::Status loaded = seat_->Load(origin, claims, load, make);
  if (!loaded.ok()) return loaded;
  loaded = Reserve(shape, parts_.room, origin, DeviceCacheOptions(&seat_->blocks()));
  if (!loaded.ok()) return loaded;
  context_.cache = &projection_cache();
  set_costs(std::make_unique<StackCosts>(context_, shape, StackRoom{nullptr, max_tokens()}));
  return absl::OkStatus();
}

std::unique_ptr<TokenPass> StackDecoder::MakePass(std::vector<TokenRun> runs,
                                                  ScratchKeeper& scratch, EncoderTimes* times) {
  if (seat_) {
    auto pass = std::make_unique<StackPass>(context_, std::move(runs), kDeviceLogitRows);
    return seat_->Run(std::move(pass), times);
  }
  const int64_t wanted = WantedRows(runs);
  auto pass = std::make_unique<StackPass>(context_, std::move(runs), wanted);
  return std::make_unique<HostTokenPass>(std::move(pass), host_, scratch, times);
}

}  // namespace longview::models
