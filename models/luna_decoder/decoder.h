// Luna's language and translation models as a Decoder: sequences of constant size, steps of one
// pass, documents that decoder layers read once.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cache/cache_budget.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/cache_room.h"
#include "models/generation/decoder.h"
#include "models/generation/encoder_stage.h"
#include "models/layers/stopwatch.h"
#include "models/luna/weights.h"
#include "models/luna_decoder/context.h"
#include "models/luna_decoder/cost.h"
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
  // Errors name the tensor, or say that addresses for the room cannot be had; `origin` begins
  // messages.
  static absl::StatusOr<std::unique_ptr<LunaDecoder>> Create(const LunaDecoderConfig& config,
                                                             Checkpoint checkpoint,
                                                             const std::string& origin,
                                                             Compute compute, const Limits& limits);

  int vocab_size() const override { return config_.vocab; }
  int max_tokens() const override { return max_tokens_; }
  int prefill_granule() const override { return kGranule; }
  const DecoderCosts& costs() const override { return costs_; }

  EncoderStage* encoder() override { return config_.encoder ? &stage_ : nullptr; }

  // Prompts are read from their first token on: `prompt` finds nothing.
  std::unique_ptr<DecoderSequence> Open(std::span<const int32_t> prompt, uint64_t space) override;
  std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds) override;

  // Runs a few shapes and fixes the rates of costs().
  absl::Status WarmUp() override;
  CacheUse cache() const override;

  const LunaDecoderConfig& config() const { return config_; }
  const LunaDecoderWeights& weights() const { return weights_; }
  // Of decoder and encoder; a shared embedding counts once.
  double parameters() const;
  double memory_bytes() const { return weights_.memory_bytes + encoder_weights_.memory_bytes; }

  // Tokens that a prompt or a document is granted in multiples of. A state may be cut anywhere;
  // whole panels of linears cost least.
  static constexpr int kGranule = 64;

 private:
  LunaDecoder(const LunaDecoderConfig& config, Checkpoint checkpoint, Compute compute,
              const Limits& limits);
  absl::Status Load(const std::string& origin, const CacheRoom& room);
  class Stage final : public EncoderStage {
   public:
    explicit Stage(LunaDecoder& decoder) : decoder_(decoder) {}
    const SequenceRules& rules() const override { return *decoder_.rules_; }
    int max_tokens() const override { return decoder_.document_tokens_; }
    int width() const override { return decoder_.config_.width; }
    std::unique_ptr<DecoderSequence> Open(const EncoderSequence& document) override;
    double DocumentBytes(const EncoderSequence& document) const override;
    double WorkspaceBytes(const EncoderSequence& document) const override;
    double EncodeSeconds(const EncoderSequence& document) const override;
    // Part of every token's own cost: keys are as many as rows of P.
    double AttendSeconds(int64_t) const override { return 0; }

   private:
    LunaDecoder& decoder_;
  };

  // Tokens of a text to calibrate with.
  EncoderSequence SampleDocument(int tokens) const;
  absl::StatusOr<std::unique_ptr<DecoderSequence>> OpenSample();

  const LunaDecoderConfig config_;
  const Checkpoint checkpoint_;
  const int max_tokens_;
  TorchParallelFor pool_;
  LunaDecoderWeights weights_;
  LunaDecoderContext context_;
  // Of translation models.
  LunaWeights encoder_weights_;
  LunaContext encoder_context_;
  std::unique_ptr<LunaRules> rules_;
  int document_tokens_ = 0;
  std::unique_ptr<kernels::CacheBudget> budget_;
  std::unique_ptr<LunaStates> states_;
  LunaCosts costs_;
  Stage stage_{*this};
  ScratchKeeper scratch_;
  EncoderTimes* times_ = nullptr;  // While WarmUp measures.
};

}  // namespace longview::models
