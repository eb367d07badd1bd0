// The autoregressive Composite Slice Transformer as a Decoder: sequences over kernels/cache, steps
// of one or more passes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/cst/lm_cost.h"
#include "models/cst/lm_pass.h"
#include "models/generation/cached_decoder.h"
#include "models/parallel.h"

namespace longview::models {

class CstDecoder final : public CachedDecoder {
 public:
  // Errors name the tensor, or say that addresses for `room` cannot be had; `origin` begins
  // messages.
  static absl::StatusOr<std::unique_ptr<CstDecoder>> Create(const CstConfig& config,
                                                            Checkpoint checkpoint,
                                                            const std::string& origin,
                                                            Compute compute, int max_tokens,
                                                            const CacheRoom& room);

  int prefill_granule() const override;

  const CstConfig& config() const { return config_; }
  const CstWeights& weights() const { return weights_; }

 private:
  CstDecoder(const CstConfig& config, Checkpoint checkpoint, Compute compute, int max_tokens);
  absl::Status Load(const std::string& origin, const CacheRoom& room);
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs, ScratchKeeper& scratch,
                                      EncoderTimes* times) override;

  const CstConfig config_;
  const Checkpoint checkpoint_;
  TorchParallelFor pool_;
  CstWeights weights_;
  CstLmContext context_;
};

}  // namespace longview::models
