// A step of LED in flight: pieces of the documents that it reads, then the tokens of sequences, all
// of them together. Sequences are those of led/sequence.h.
#pragma once

#include <span>
#include <vector>

#include "models/generation/decoder.h"
#include "models/dense/scratch_keeper.h"
#include "models/generation/pass_step.h"
#include "models/layers/stopwatch.h"
#include "models/led/context.h"

namespace longview::models {

// Used by the executor's thread.
class LedStep final : public DecoderStep {
 public:
  // Borrowed arguments outlive the step, the feeds' tokens included; `times` may be null.
  LedStep(const LedContext& context, ScratchKeeper& scratch, std::span<const DecoderFeed> feeds,
          EncoderTimes* times);

  bool Advance() override;
  void Drop(int feed) override;
  absl::Status status() const override { return status_; }
  std::span<const float> Logits(int feed) const override { return tokens_.Logits(feed); }
  const ChosenToken* Chosen(int feed) const override { return tokens_.Chosen(feed); }

 private:
  absl::Status Run(bool* more);

  std::vector<DecoderFeed> feeds_;
  std::vector<bool> dropped_;
  size_t reading_ = 0;  // The feed whose document is read; past the last: tokens are.
  bool begun_ = false;
  PassStep tokens_;
  absl::Status status_;
};

}  // namespace longview::models
