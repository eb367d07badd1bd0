#include "models/generation/sampling/sampler.h"

#include <algorithm>
#include <limits>

#include "kernels/base/counter_random.h"
#include "models/generation/sampling/row_math.h"

namespace longview::models {

absl::Status LogitsNotNumbers() {
  return absl::InternalError("the model's logits are not numbers");
}

absl::Status LogitsNotFinite() { return absl::InternalError("the model's logits are not finite"); }

absl::Status NoTokenLeft() {
  return absl::InvalidArgumentError("the options leave no token to generate");
}

absl::StatusOr<int32_t> Sampler::Choose(std::span<const float> logits, const TokenHistory& history,
                                        int sample) {
  const RowPeak peak = FindPeak(logits);
  if (!settings_.remove_invalid && !peak.valid) {
    return LogitsNotNumbers();
  }
  if (!settings_.sample && processors_.neutral()) return peak.id;
  scores_.assign(logits.begin(), logits.end());
  processors_.Apply(history, scores_);
  // The first of equal ones; with every token banned greedy search takes the first of all, as
  // HuggingFace does.
  const auto best = std::max_element(scores_.begin(), scores_.end());
  if (!settings_.sample) return static_cast<int32_t>(best - scores_.begin());
  if (*best == -std::numeric_limits<double>::infinity()) {
    return NoTokenLeft();
  }
  if (!(*best < std::numeric_limits<double>::infinity())) {
    return LogitsNotFinite();
  }
  const double uniform = kernels::Uniform(settings_.seed, static_cast<uint32_t>(sample),
                                          static_cast<uint32_t>(history.generated().size()));
  return filter_.neutral() ? DrawFromAll(*best, uniform) : Draw(filter_.Keep(scores_), uniform);
}

int32_t Sampler::Draw(std::span<const Candidate> kept, double uniform) const {
  double total = 0;
  for (const Candidate& candidate : kept) total += candidate.weight;
  double left = total * uniform;
  int32_t last = kept[0].id;  // The last that can be drawn: rounding may leave it a rest.
  for (const Candidate& candidate : kept) {
    if (candidate.weight <= 0) continue;
    last = candidate.id;
    left -= candidate.weight;
    if (left < 0) break;
  }
  return last;
}

int32_t Sampler::DrawFromAll(double best, double uniform) {
  const double factor = 1 / settings_.temperature;
  weights_.resize(scores_.size());
  for (size_t id = 0; id < scores_.size(); ++id) {
    weights_[id] = static_cast<float>((scores_[id] - best) * factor);
  }
  Exponentials(weights_, weights_);
  double total = 0;
  for (const float weight : weights_) total += weight;
  double left = total * uniform;
  size_t last = 0;
  for (size_t id = 0; id < weights_.size(); ++id) {
    if (weights_[id] <= 0) continue;
    last = id;
    left -= weights_[id];
    if (left < 0) break;
  }
  return static_cast<int32_t>(last);
}

}  // namespace longview::models
