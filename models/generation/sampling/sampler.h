// Chooses the next token of one sequence from its logits.
// Not thread-safe: keeps its buffer between calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/generation/options/settings.h"
#include "models/generation/sampling/candidate_filter.h"
#include "models/generation/sampling/logits_processors.h"
#include "models/generation/sampling/token_history.h"

namespace longview::models {

// Why there is no next token: a logit is NaN; the largest is infinite and tokens are drawn; all of
// them are banned.
absl::Status LogitsNotNumbers();
absl::Status LogitsNotFinite();
absl::Status NoTokenLeft();

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
  int32_t Draw(std::span<const Candidate> kept, double uniform) const;
  int32_t DrawFromAll(double best, double uniform);

  const GenerationSettings& settings_;
  const LogitsProcessors& processors_;
  CandidateFilter filter_;
  std::vector<double> scores_;
  std::vector<float> weights_;
};

}  // namespace longview::models
