// Luna's language and translation models as a Decoder, on the host or a device: sequences of
// constant size, documents that decoder layers read once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/cache_room.h"
#include "models/generation/counted_costs.h"
#include "models/generation/decoder_seat.h"
#include "models/generation/encoder_stage.h"
#include "models/luna_decoder/context.h"
#include "models/luna_decoder/rules.h"
#include "models/parallel.h"

namespace longview::models {

class LunaDecoder final : public Decoder {
 public:
  struct Limits {
    int tokens = 0;    // Of an output, of a translation its start included.
    int document = 0;  // Of a translation's source.
    CacheRoom room = 0;
  };
  // On `device`; null: on the host. RESOURCE_EXHAUSTED if addresses for the room cannot be had, or,
  // with need and limit, if the model does not fit the device's free memory. Other errors name the
  // tensor; `origin` begins messages.
  static absl::StatusOr<std::unique_ptr<LunaDecoder>> Create(
      const LunaDecoderConfig& config, Checkpoint checkpoint, const std::string& origin,
      Compute compute, const Limits& limits, std::unique_ptr<Device> device = nullptr);

  int vocab_size() const override { return config_.vocab; }
  int max_tokens() const override { return limits_.tokens; }
  // A device reads a document at once.
  int prefill_granule() const override {
    return seat_ && config_.encoder ? limits_.document : kGranule;
  }
  const DecoderCosts& costs() const override { return *costs_; }

  EncoderStage* encoder() override { return config_.encoder ? &stage_ : nullptr; }

  // Prompts are read from their first token on: `prompt` finds nothing.
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt, uint64_t space) override;
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override;

  // Runs a few shapes and fixes the rates of costs().
  absl::Status WarmUp() override;
  CacheUse cache() const override;

  const LunaDecoderConfig& config() const { return config_; }
  const kernels::ProjectionCache& states() const { return *states_; }
  // Of decoder and encoder; a shared embedding counts once.
  double parameters() const;
  // Where the model runs, beside the caches.
  double memory_bytes() const;

  // Tokens that a prompt or, on the host, a document is granted in multiples of. A state may be cut
  // anywhere; whole panels of linears cost least.
  static constexpr int kGranule = 64;

 private:
  LunaDecoder(const LunaDecoderConfig& config, Checkpoint checkpoint, Compute compute,
              const Limits& limits, std::unique_ptr<Device> device);
  absl::Status Load(const std::string& origin);
  absl::Status LoadOnDevice(const std::string& origin);
  absl::Status LoadWeights(const std::string& origin, std::optional<Compute> compute,
                           DeviceStore* store);
  void CountCosts();
  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs);

  class Stage final : public EncoderStage {
   public:
    explicit Stage(LunaDecoder& decoder) : decoder_(decoder) {}
    const SequenceRules& rules() const override { return *decoder_.rules_; }
    int max_tokens() const override { return decoder_.limits_.document; }
    int width() const override { return decoder_.config_.width; }
    std::unique_ptr<DecoderSequence> Open(const EncoderSequence& document) override;
    DocumentCost Cost(const EncoderSequence& document) const override;
    // Part of every token's own cost: keys are as many as rows of P.
    double AttendSeconds(int64_t) const override { return 0; }

   private:
    LunaDecoder& decoder_;
  };

  // Tokens of a text to calibrate with.
  EncoderSequence SampleDocument() const;
  absl::StatusOr<std::unique_ptr<DecoderSequence>> OpenSample();

  const LunaDecoderConfig config_;
  const Checkpoint checkpoint_;
  const Limits limits_;
  TorchParallelFor pool_;
  const ComputeContext host_;
  const std::unique_ptr<DecoderSeat> seat_;  // Null on the host; outlives the caches.
  LunaDecoderWeights weights_;
  LunaWeights encoder_weights_;       // Translation.
  std::unique_ptr<LunaRules> rules_;  // The same.
  LunaDecoderContext context_;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<kernels::ProjectionCache> states_, documents_;
  std::unique_ptr<CountedCosts> costs_;
  Stage stage_{*this};
  ScratchKeeper scratch_;
  EncoderTimes* times_ = nullptr;  // While WarmUp measures.
};

}  // namespace longview::models
