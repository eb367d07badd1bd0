// LED as a Decoder with an encoder, on the host or a device: documents, sequences over them, steps
// that read both.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/dense/scratch_keeper.h"
#include "models/encoder/work.h"
#include "models/generation/cache_room.h"
#include "models/generation/decoder_seat.h"
#include "models/generation/encoder_stage.h"
#include "models/led/context.h"
#include "models/led/rules.h"
#include "models/parallel.h"
#include "models/stack/cost.h"

namespace longview::models {

class LedDecoder final : public Decoder {
 public:
  struct Limits {
    int document = 0;  // Tokens.
    CacheRoom room = 0;
  };
  // On `device`; null: on the host. RESOURCE_EXHAUSTED if addresses for the room cannot be had, or,
  // with need and limit, if the model does not fit the device's free memory. Other errors name the
  // tensor; `origin` begins messages.
  static absl::StatusOr<std::unique_ptr<LedDecoder>> Create(LedConfig config, Checkpoint checkpoint,
                                                            const std::string& origin,
                                                            Compute compute, const Limits& limits,
                                                            std::unique_ptr<Device> device);

  int vocab_size() const override { return config_.decoder.vocab; }
  // The last token generated is never read.
  int max_tokens() const override { return config_.max_output + 1; }
  // A device reads a document at once.
  int prefill_granule() const override { return seat_ ? limits_.document : kGranule; }
  const DecoderCosts& costs() const override { return *costs_; }
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt, uint64_t space) override;
  EncoderStage* encoder() override { return &stage_; }
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override;
  absl::Status WarmUp() override;
  CacheUse cache() const override;

  double parameters() const { return weights_.parameters; }
  // Where the model runs, beside the caches.
  double memory_bytes() const { return seat_ ? seat_->memory_bytes() : weights_.memory_bytes; }

  // On the host a document's tokens are granted in multiples of so many: a fraction of a second's
  // work.
  static constexpr int kGranule = 16;

 private:
  LedDecoder(LedConfig config, Checkpoint checkpoint, Compute compute, const Limits& limits,
             std::unique_ptr<Device> device);
  absl::Status Load(const std::string& origin);
  absl::Status LoadOnDevice(const std::string& origin, const kernels::CacheShape& shape,
                            const kernels::CacheShape& documents);

  class Stage final : public EncoderStage {
   public:
    explicit Stage(LedDecoder& decoder) : decoder_(decoder) {}
    const SequenceRules& rules() const override { return decoder_.rules_; }
    int max_tokens() const override { return decoder_.limits_.document; }
    int width() const override { return decoder_.config_.decoder.width; }
    std::unique_ptr<DecoderSequence> Open(const EncoderSequence& document) override;
    DocumentCost Cost(const EncoderSequence& document) const override;
    double AttendSeconds(int64_t tokens) const override;

   private:
    LedDecoder& decoder_;
  };

  std::unique_ptr<TokenPass> MakePass(std::vector<TokenRun> runs);
  EncoderWork WorkOf(const EncoderSequence& document) const;
  absl::Status Calibrate(int tokens, EncoderRates& encoder, DecoderRates& decoder);

  const LedConfig config_;
  const Checkpoint checkpoint_;
  const Limits limits_;
  const LedRules rules_;
  TorchParallelFor pool_;
  const std::unique_ptr<DecoderSeat> seat_;  // Null on the host; outlives the caches.
  LedWeights weights_;
  LedContext context_;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_, documents_;
  std::unique_ptr<StackCosts> costs_;
  EncoderRates encoder_rates_;
  ScratchKeeper scratch_;
  EncoderTimes* times_ = nullptr;  // While WarmUp measures.
  Stage stage_{*this};
};

}  // namespace longview::models
