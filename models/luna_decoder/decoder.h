// Luna's language model as a Decoder: sequences of constant size, steps of one pass.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cache/cache_budget.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/decoder.h"
#include "models/layers/stopwatch.h"
#include "models/luna_decoder/context.h"
#include "models/luna_decoder/cost.h"
#include "models/parallel.h"

namespace longview::models {

class LunaDecoder final : public Decoder {
 public:
  // Errors name the tensor, or say that `cache_bytes` of addresses cannot be had; `origin` begins
  // messages.
  static absl::StatusOr<std::unique_ptr<LunaDecoder>> Create(const LunaDecoderConfig& config,
                                                             Checkpoint checkpoint,
                                                             const std::string& origin,
                                                             Compute compute, int max_tokens,
                                                             double cache_bytes);

  int vocab_size() const override { return config_.vocab; }
  int max_tokens() const override { return max_tokens_; }
  int prefill_granule() const override { return kGranule; }
  const DecoderCosts& costs() const override { return costs_; }

  // Prompts are read from their first token on: `prompt` finds nothing.
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt) override;
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override;

  // Unless told not to (longview.json), runs a few shapes and fixes the rates of costs().
  absl::Status WarmUp() override;
  void set_warms_up(bool warms_up) { warms_up_ = warms_up; }
  CacheUse cache() const override;

  const LunaDecoderConfig& config() const { return config_; }
  const LunaDecoderWeights& weights() const { return weights_; }

  // Tokens that a prompt is granted in multiples of. A state may be cut anywhere; whole panels of
  // linears cost least.
  static constexpr int kGranule = 64;

 private:
  LunaDecoder(const LunaDecoderConfig& config, Checkpoint checkpoint, Compute compute,
              int max_tokens);
  absl::Status Load(const std::string& origin, double cache_bytes);
  absl::Status Calibrate(int prompt, LunaRates& rates);
  // Seconds of one step.
  absl::StatusOr<double> Time(const DecoderFeed& feed, EncoderTimes* times);

  const LunaDecoderConfig config_;
  const Checkpoint checkpoint_;
  const int max_tokens_;
  bool warms_up_ = true;
  TorchParallelFor pool_;
  LunaDecoderWeights weights_;
  LunaDecoderContext context_;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<LunaStates> states_;
  LunaCosts costs_;
  ScratchKeeper scratch_;
};

}  // namespace longview::models
