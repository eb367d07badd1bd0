#include "models/generation/model/generator_run.h"

#include <cstdint>
#include <iterator>

namespace longview::models {

GeneratorRun::GeneratorRun(Decoder& decoder, TeamChoice* teams, std::span<const StepGrant> grants)
    : decoder_(decoder), turn_(teams) {
  double seconds = decoder.costs().StepSeconds();
  for (const StepGrant& grant : grants) {
    auto* generation = static_cast<StepMember*>(grant.generation);
    const Generation::Need need = generation->need();
    seconds += grant.prefill > 0 ? grant.prefill * need.prefill_seconds : need.decode_seconds;
    const auto first = static_cast<int>(feeds_.size());
    generation->AddFeeds(grant.prefill, feeds_);
    members_.push_back({generation, first, static_cast<int>(feeds_.size()) - first});
  }
  int64_t rows = 0;
  for (const DecoderFeed& feed : feeds_) rows += std::ssize(feed.tokens) + feed.encode;
  turn_.BeginRows(rows, seconds);
}

bool GeneratorRun::Advance() {
  if (feeds_.empty()) return false;
  bool more = false;
  {
    const TeamTurn::Part part(turn_);
    more = Step();
  }
  if (!more && step_->status().ok()) turn_.End();
  return more;
}

bool GeneratorRun::Step() {
  if (step_ == nullptr) {
    step_ = decoder_.Begin(feeds_);
    for (const Member& member : members_) {
      for (int f = 0; member.dropped && f < member.feeds; ++f) step_->Drop(member.first_feed + f);
    }
  }
  if (step_->Advance()) return true;
  Finish();
  return false;
}

void GeneratorRun::Finish() {
  const absl::Status status = step_->status();
  for (const Member& member : members_) {
    if (member.dropped) continue;
    if (status.ok()) {
      member.generation->Absorb(*step_, member.first_feed);
    } else {
      member.generation->Fail(status);
    }
  }
}

void GeneratorRun::Drop(int i) {
  Member& member = members_[static_cast<size_t>(i)];
  if (member.dropped) return;
  member.dropped = true;
  turn_.Spoil();
  if (step_ == nullptr) return;
  for (int f = 0; f < member.feeds; ++f) step_->Drop(member.first_feed + f);
}

}  // namespace longview::models
