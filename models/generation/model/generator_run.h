// One step of several generations: their feeds through the decoder layer by layer, then each makes
// of its logits what it wants.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/generation/decoder/decoder.h"
#include "models/generation/model/step_member.h"
#include "models/model.h"
#include "models/team_turn.h"

namespace longview::models {

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
