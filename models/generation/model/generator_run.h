// One step of several generations: their feeds through the decoder layer by layer, then each makes
// of its logits what it wants.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "models/generation/decoder/decoder.h"
#include "models/model.h"
#include "models/team_turn.h"

namespace longview::models {

// A generation as GeneratorRun sees it: what it feeds to a step, and what it makes of the logits.
// Belongs to the executor's thread.
class StepMember : public Generation {
 public:
  // Adds the feeds of a step: `prefill` tokens of the prompt, or with 0 its sequences' next tokens.
  virtual void AddFeeds(int prefill, std::vector<DecoderFeed>& feeds) = 0;
  // After the step: its feeds' logits, beginning with feed `first`.
  virtual void Absorb(const DecoderStep& step, int first) = 0;
  // The step failed; so has the generation.
  virtual void Fail(const absl::Status& status) = 0;
};

class GeneratorRun final : public Run {
 public:
  // Borrows the decoder, the choice, which may be null, and the generations, which are StepMembers.
  GeneratorRun(Decoder& decoder, TeamChoice* teams, std::span<const StepGrant> grants);

  bool Advance() override;
  void Drop(int i) override;
  absl::StatusOr<Answer> Take(int) override {
    return absl::FailedPreconditionError("a step has no answers; its generations have");
  }

 private:
  struct Member {
    StepMember* generation;
    int first_feed;
    int feeds;
    bool dropped = false;
  };

  bool Step();
  void Finish();

  Decoder& decoder_;
  TeamTurn turn_;
  std::vector<DecoderFeed> feeds_;
  std::vector<Member> members_;
  std::unique_ptr<DecoderStep> step_;
};

}  // namespace longview::models
