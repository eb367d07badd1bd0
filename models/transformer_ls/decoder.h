// Transformer-LS as a Decoder: sequences over the projection cache, steps of one or more passes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/generation/cached_decoder.h"
#include "models/parallel.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/context.h"
#include "models/transformer_ls/cost.h"
#include "models/transformer_ls/pass.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {

class LsDecoder final : public CachedDecoder {
 public:
  // Errors name the tensor, or say that addresses for `room` cannot be had; `origin` begins
  // messages.
  static absl::StatusOr<std::unique_ptr<LsDecoder>> Create(const LsLmConfig& config,
                                                           Checkpoint checkpoint,
                                                           const std::string& origin,
                                                           Compute compute, int max_tokens,
                                                           const CacheRoom& room);

  int prefill_granule() const override { return config_.granule(); }

  const LsLmConfig& config() const { return config_; }
  const LsLmWeights& weights() const { return weights_; }
  const LsContext& context() const { return context_; }

 private:
  LsDecoder(const LsLmConfig& config, Checkpoint checkpoint, Compute compute, int max_tokens);
  absl::Status Load(const std::string& origin, const CacheRoom& room);
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                      EncoderTimes* times) override;

  const LsLmConfig config_;
  const Checkpoint checkpoint_;
  TorchParallelFor pool_;
  LsLmWeights weights_;
  LsContext context_;
  std::unique_ptr<RelativeTables> tables_;
  std::unique_ptr<ZeroBlocks> zero_;
};

}  // namespace longview::models
