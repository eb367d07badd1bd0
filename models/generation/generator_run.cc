#include "models/generation/generator_run.h"

namespace longview::models {

GeneratorRun::GeneratorRun(Decoder& decoder, std::span<const StepGrant> grants)
    : decoder_(decoder) {
  for (const StepGrant& grant : grants) {
    auto* generation = static_cast<StepMember*>(grant.generation);
    const auto first = static_cast<int>(feeds_.size());
    generation->AddFeeds(grant.prefill, feeds_);
    members_.push_back({generation, first, static_cast<int>(feeds_.size()) - first});
  }
}

bool GeneratorRun::Advance() {
  if (feeds_.empty()) return false;
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
  if (step_ == nullptr) return;
  for (int f = 0; f < member.feeds; ++f) step_->Drop(member.first_feed + f);
}

}  // namespace longview::models
