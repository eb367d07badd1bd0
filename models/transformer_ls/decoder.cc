#include "models/transformer_ls/decoder.h"

#include <utility>

#include "kernels/base/cpu_features.h"
#include "models/torch_guard.h"
#include "models/transformer_ls/cache_layout.h"

namespace longview::models {
namespace {

// Decoding reads its cache at the speed of memory: blocks are bf16 wherever a variant reads them
// so, even where its arithmetic is not the fastest.
kernels::Isa Bf16CacheIsa() {
  for (const kernels::Isa isa : {kernels::Isa::kAmxBf16, kernels::Isa::kAvx512Bf16}) {
    if (IsaSupported(isa)) return isa;
  }
  return kernels::BestBf16Isa();
}

PassStep::Rules RulesOf(const LsLmConfig& config) {
  PassStep::Rules rules = {"transformer_ls", config.vocab};
  if (config.schedule == LsSchedule::kBlocks) rules.boundary = config.block;
  return rules;
}

}  // namespace

LsDecoder::LsDecoder(const LsLmConfig& config, Checkpoint checkpoint, Compute compute,
                     int max_tokens)
    : CachedDecoder(RulesOf(config), max_tokens),
      config_(config),
      checkpoint_(std::move(checkpoint)),
      context_(config_, weights_, compute, pool_) {
  if (compute == Compute::kBf16) context_.isa = Bf16CacheIsa();
}

absl::StatusOr<std::unique_ptr<LsDecoder>> LsDecoder::Create(const LsLmConfig& config,
                                                             Checkpoint checkpoint,
                                                             const std::string& origin,
                                                             Compute compute, int max_tokens,
                                                             const CacheRoom& room) {
  std::unique_ptr<LsDecoder> decoder(
      new LsDecoder(config, std::move(checkpoint), compute, max_tokens));
  if (absl::Status status = decoder->Load(origin, room); !status.ok()) return status;
  return decoder;
}

absl::Status LsDecoder::Load(const std::string& origin, const CacheRoom& room) {
  absl::StatusOr<LsLmWeights> weights =
      LoadLsLmWeights(config_, checkpoint_, origin, context_.compute);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  absl::Status status = GuardTorch(origin, [&] {
    tables_ = std::make_unique<RelativeTables>(
        config_, weights_, context_.compute, config_.pattern().MostSegmentIds(max_tokens()), pool_);
    if (config_.zero_memory) {
      zero_ = std::make_unique<ZeroBlocks>(config_, weights_, context_.block_type());
    }
  });
  if (!status.ok()) return status;
  const kernels::CacheShape shape = LsCacheShape(config_, context_.block_type());
  status = Reserve(shape, room, origin);
  if (!status.ok()) return status;
  context_.tables = tables_.get();
  context_.zero = zero_.get();
  context_.cache = &projection_cache();
  set_costs(std::make_unique<LsCosts>(context_, shape, max_tokens()));
  return absl::OkStatus();
}

std::unique_ptr<TokenPass> LsDecoder::MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                               EncoderTimes* times) {
  return std::make_unique<LsPass>(context_, scratch, std::move(runs), times);
}

}  // namespace longview::models
