// A step of a family whose own steps take any number of tokens at once: prompts are cut at
// multiples of kPrefillPart (prefill_part.h), and each part is a step of the family's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/generation/decoder.h"

namespace longview::models {

// Used by the executor's thread.
class PartedStep final : public DecoderStep {
 public:
  // Feeds are borrowed until the step is destroyed.
  using BeginPart = std::function<std::unique_ptr<DecoderStep>(std::span<const DecoderFeed> feeds)>;

  // The family's own step where no feed has to be cut, else one of these.
  static std::unique_ptr<DecoderStep> Begin(std::span<const DecoderFeed> feeds, BeginPart begin);

  bool Advance() override;
  // It is in no later part: its sequence is not read on.
  void Drop(int feed) override;
  absl::Status status() const override { return status_; }
  std::span<const float> Logits(int feed) const override {
    return feeds_[static_cast<size_t>(feed)].logits;
  }

 private:
  struct Feed {
    DecoderFeed whole;
    size_t read = 0;  // Tokens given to a part.
    bool dropped = false;
    std::vector<float> logits;

    size_t left() const { return dropped ? 0 : whole.tokens.size() - read; }
  };

  PartedStep(std::span<const DecoderFeed> feeds, BeginPart begin);

  void NextPart();
  DecoderFeed NextOf(Feed& feed) const;
  void TakeLogits();

  const BeginPart begin_;
  std::vector<Feed> feeds_;
  std::vector<DecoderFeed> part_feeds_;
  std::vector<size_t> part_members_;  // The place of each of them in feeds_.
  std::unique_ptr<DecoderStep> part_;
  bool begun_ = false;
  absl::Status status_;
};

}  // namespace longview::models
