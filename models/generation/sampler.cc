#include "models/generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/generation/counter_random.h"

namespace longview::models {

absl::StatusOr<int32_t> Sampler::Choose(std::span<const float> logits, const TokenHistory& history,
                                        int sample) {
  const auto not_a_number = [](auto score) { return std::isnan(score); };
  if (!settings_.remove_invalid && std::any_of(logits.begin(), logits.end(), not_a_number)) {
    return absl::InternalError("the model's logits are not numbers");
  }
  if (!settings_.sample && processors_.neutral()) return Best(logits);
  scores_.assign(logits.begin(), logits.end());
  processors_.Apply(history, scores_);
  const int32_t best = Best(std::span<const double>(scores_));
  // With every token banned greedy search takes the first, as HuggingFace does.
  if (!settings_.sample) return best;
  if (scores_[best] == -std::numeric_limits<double>::infinity()) {
    return absl::InvalidArgumentError("the options leave no token to generate");
  }
  return Draw(sample, history.tokens() - history.prompt());
}

absl::StatusOr<int32_t> Sampler::Draw(int sample, int step) {
  const std::span<const Candidate> kept = filter_.Keep(scores_);
  if (kept.empty()) return absl::InternalError("the model's logits are not finite");
  double total = 0;
  for (const Candidate& candidate : kept) total += candidate.weight;
  double left =
      total * Uniform(settings_.seed, static_cast<uint32_t>(sample), static_cast<uint32_t>(step));
  for (const Candidate& candidate : kept) {
    left -= candidate.weight;
    if (left < 0) return candidate.id;
  }
  // Rounding left a rest: it belongs to the last that could be drawn.
  const auto last = std::find_if(kept.rbegin(), kept.rend(),
                                 [](const Candidate& candidate) { return candidate.weight > 0; });
  return last->id;
}

}  // namespace longview::models
