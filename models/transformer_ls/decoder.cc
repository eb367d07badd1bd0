#include "models/transformer_ls/decoder.h"

#include <algorithm>
#include <utility>

#include "kernels/base/cpu_features.h"
#include "kernels/cuda/span/launch_shape.h"
#include "models/generation/host_token_pass.h"
#include "models/layers/span_rows.h"
#include "models/transformer_ls/cache_layout.h"
#include "models/transformer_ls/cost.h"
#include "models/transformer_ls/pass.h"

namespace longview::models {
namespace {

// Decoding reads its cache at the speed of memory: blocks are bf16 wherever a variant reads them
// so, even where its arithmetic is not the fastest.
ComputeContext HostOf(Compute compute, const kernels::ParallelFor& pool) {
  ComputeContext context(compute, pool);
  if (compute != Compute::kBf16) return context;
  context.isa = kernels::BestBf16Isa();
  for (const kernels::Isa isa : {kernels::Isa::kAvx512Bf16, kernels::Isa::kAmxBf16}) {
    if (IsaSupported(isa)) context.isa = isa;
  }
  return context;
}

PassStep::Rules RulesOf(const LsLmConfig& config, bool on_device) {
  PassStep::Rules rules = {"transformer_ls", config.vocab};
  if (on_device) rules = DeviceRules(rules.family, config.vocab);
  if (config.early()) rules.boundary = config.block;
  return rules;
}

}  // namespace

// Zero memory is seen where a window, or the memory, is not full.
DeviceTokenTexts LsDeviceTexts(const LsLmConfig& config, int max_tokens) {
  DeviceTokenTexts texts = max_tokens;
  if (config.early()) texts.boundary = config.block;
  if (config.zero_memory) texts.ends = {config.window, config.memory};
  return texts;
}

LsDecoder::LsDecoder(const LsLmConfig& config, Checkpoint checkpoint, Compute compute,
                     int max_tokens, std::unique_ptr<Device> device)
    : CachedDecoder(RulesOf(config, device != nullptr), max_tokens),
      config_(config),
      checkpoint_(std::move(checkpoint)),
      host_(HostOf(device != nullptr ? Compute::kFp32 : compute, pool_)),
      seat_(device != nullptr ? std::make_unique<DecoderSeat>(std::move(device), compute)
                              : nullptr) {
  context_.config = &config_;
  context_.weights = &weights_;
  context_.compute = compute;
  context_.on_device = seat_ != nullptr;
  context_.tile_rows = seat_ ? kernels::cuda::kDeviceTileRows : host_.tile_rows();
}

absl::StatusOr<std::unique_ptr<LsDecoder>> LsDecoder::Create(
    const LsLmConfig& config, Checkpoint checkpoint, const std::string& origin, Compute compute,
    int max_tokens, const CacheRoom& room, std::unique_ptr<Device> device) {
  const bool on_device = device != nullptr;
  std::unique_ptr<LsDecoder> decoder;
  absl::Status loaded;
  const absl::Status guarded = GuardDevice(origin, [&] {
    decoder.reset(
        new LsDecoder(config, std::move(checkpoint), compute, max_tokens, std::move(device)));
    loaded = on_device ? decoder->LoadOnDevice(origin, room) : decoder->Load(origin, room);
  });
  if (!guarded.ok()) return guarded;
  if (!loaded.ok()) return loaded;
  return decoder;
}

absl::Status LsDecoder::Load(const std::string& origin, const CacheRoom& room) {
  absl::StatusOr<LsLmWeights> weights =
      LoadLsLmWeights(config_, checkpoint_, origin, context_.compute);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  context_.few_rows = weights_.packs_rows();
  tables_ = std::make_unique<RelativeTables>(
      config_, weights_, context_.compute, config_.pattern().MostSegmentIds(max_tokens()), pool_);
  const kernels::CacheShape shape = LsCacheShape(config_, host_.block_type());
  if (absl::Status status = Reserve(shape, room, origin); !status.ok()) return status;
  Finish(shape, host_.block_type());
  return absl::OkStatus();
}

absl::Status LsDecoder::LoadOnDevice(const std::string& origin, const CacheRoom& room) {
  const Device::Turn turn(seat_->device());
  const kernels::DType type = SpanType(context_.compute);
  kernels::CacheShape shape = LsCacheShape(config_, type);
  shape.form = kernels::BlockForm::kRows;
  context_.few_rows = true;
  const auto load = [&](std::optional<Compute> compute, DeviceStore& store) {
    absl::StatusOr<LsLmWeights> weights =
        LoadLsLmWeights(config_, checkpoint_, origin, compute, &store, max_tokens());
    if (weights.ok()) weights_ = *std::move(weights);
    return weights.status();
  };
  const auto make = [&](std::vector<TokenRun> runs) {
    return std::make_unique<LsPass>(context_, std::move(runs), kDeviceLogitRows);
  };
  const DecoderSeat::Claims claims = {
      config_.vocab, LsDeviceTexts(config_, max_tokens()), {shape}, room, nullptr};
  absl::Status loaded = seat_->Load(origin, claims, load, make);
  if (!loaded.ok()) return loaded;
  tables_ = std::make_unique<RelativeTables>(config_, weights_);
  loaded = Reserve(shape, room, origin, DeviceCacheOptions(&seat_->blocks()));
  if (!loaded.ok()) return loaded;
  Finish(shape, type);
  return absl::OkStatus();
}

void LsDecoder::Finish(const kernels::CacheShape& shape, kernels::DType blocks) {
  if (config_.zero_memory) zero_ = std::make_unique<ZeroBlocks>(config_, weights_, blocks);
  context_.tables = tables_.get();
  context_.zero = zero_.get();
  context_.cache = &projection_cache();
  set_costs(
      std::make_unique<LsCosts>(context_, shape, seat_ ? nullptr : &host_, max_tokens()));
}

std::unique_ptr<TokenPass> LsDecoder::MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                               EncoderTimes* times) {
  if (seat_) {
    return seat_->Run(std::make_unique<LsPass>(context_, std::move(runs), kDeviceLogitRows),
                      times);
  }
  const int64_t wanted = WantedRows(runs);
  return std::make_unique<HostTokenPass>(
      std::make_unique<LsPass>(context_, std::move(runs), wanted), host_, scratch, times);
}

}  // namespace longview::models
