#include "models/cst/lm_decoder.h"

#include <utility>

#include "models/cst/lm_cache.h"

namespace longview::models {
CstDecoder::CstDecoder(const CstConfig& config, Checkpoint checkpoint, Compute compute,
                       int max_tokens)
    : CachedDecoder({"cst", config.vocab}, max_tokens),
      config_(config),
      checkpoint_(std::move(checkpoint)),
      context_{CstContext(config_, weights_, compute, pool_)} {}

absl::StatusOr<std::unique_ptr<CstDecoder>> CstDecoder::Create(const CstConfig& config,
                                                               Checkpoint checkpoint,
                                                               const std::string& origin,
                                                               Compute compute, int max_tokens,
                                                               const CacheRoom& room) {
  std::unique_ptr<CstDecoder> decoder(
      new CstDecoder(config, std::move(checkpoint), compute, max_tokens));
  if (absl::Status status = decoder->Load(origin, room); !status.ok()) return status;
  return decoder;
}

absl::Status CstDecoder::Load(const std::string& origin, const CacheRoom& room) {
  absl::StatusOr<CstWeights> weights =
      LoadCstWeights(config_, checkpoint_, origin, context_.rows.compute);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  const kernels::CacheShape shape = CstCacheShape(config_, context_.rows.block_type());
  if (absl::Status status = Reserve(shape, room, origin); !status.ok()) return status;
  context_.cache = &projection_cache();
  set_costs(std::make_unique<CstLmCosts>(context_.rows, shape, max_tokens()));
  return absl::OkStatus();
}

int CstDecoder::prefill_granule() const { return CstGranule(config_); }

std::unique_ptr<TokenPass> CstDecoder::MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                                EncoderTimes* times) {
  return std::make_unique<CstLmPass>(context_, scratch, std::move(runs), times);
}

}  // namespace longview::models
