#include "models/generation/passes/device_token_results.h"

#include <cstring>
#include <utility>

namespace longview::models {

void DeviceTokenResults::Bring(const float* logits, float* to) {
  float* const pinned = pinned_ + brought_.size() * vocab_;
  device_.Check(device_.api().copy_out(device_.stream(), pinned, logits, vocab_ * sizeof(float)),
                "logits");
  brought_.push_back(to);
}

void DeviceTokenResults::BringOrChoose(const float* logits, const TokenRun& run) {
  if (run.choice != nullptr) {
    sampled_.push_back({logits, *run.choice});
    chosen_.push_back(run.chosen);
  } else {
    Bring(logits, run.logits);
  }
}

void DeviceTokenResults::Choose() {
  if (!sampled_.empty()) sampler_.Hand(sampled_);
  sampled_.clear();
}

void DeviceTokenResults::Take() {
  if (brought_.empty() && chosen_.empty()) return;
  device_.Wait();
  for (size_t i = 0; i < brought_.size(); ++i) {
    std::memcpy(brought_[i], pinned_ + i * vocab_, vocab_ * sizeof(float));
  }
  brought_.clear();
  if (chosen_.empty()) return;
  std::vector<ChosenToken> tokens = sampler_.Take();
  for (size_t i = 0; i < tokens.size(); ++i) *chosen_[i] = std::move(tokens[i]);
  chosen_.clear();
}

}  // namespace longview::models
