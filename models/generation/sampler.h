// Chooses the next token of one sequence from its scores.
// Not thread-safe: keeps its buffer between calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "models/generation/candidate_filter.h"
#include "models/generation/logits_processors.h"
#include "models/generation/settings.h"
#include "models/generation/token_history.h"

namespace longview::models {

// The highest score; the lowest id among equal ones. REQUIRES: not empty.
template <typename Score>
int32_t Best(std::span<const Score> scores) {
  size_t best = 0;
  for (size_t id = 1; id < scores.size(); ++id) {
    if (scores[id] > scores[best]) best = id;
  }
  return static_cast<int32_t>(best);
}

class Sampler {
 public:
  // Both are borrowed.
  Sampler(const GenerationSettings& settings, const LogitsProcessors& processors)
      : settings_(settings), processors_(processors), filter_(settings, 1) {}

  // The next token of `sample`. Greedy unless the settings sample; else a draw that depends on
  // the seed, the sample, the number of tokens generated before and the scores alone.
  // INVALID_ARGUMENT if the options leave nothing to draw from, INTERNAL if a logit is not a
  // number.
  absl::StatusOr<int32_t> Choose(std::span<const float> logits, const TokenHistory& history,
                                 int sample);

 private:
  absl::StatusOr<int32_t> Draw(int sample, int step);

  const GenerationSettings& settings_;
  const LogitsProcessors& processors_;
  CandidateFilter filter_;
  std::vector<double> scores_;
};

}  // namespace longview::models
