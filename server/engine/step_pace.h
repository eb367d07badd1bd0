// How long steps of a generating model take over what it predicts, of late: one factor for prompt
// tokens that are read, one for tokens that are sampled and the fixed price of a step.
//
// The two are wrong by different factors: what disturbs the steps of microseconds that a warm-up
// times may leave its long prompt as it was. So a step teaches the one that has most of it.
// Not thread-safe.
#pragma once

#include "absl/time/time.h"
#include "server/engine/prediction_pace.h"

namespace longview::server {

class StepPace {
 public:
  // A step that was predicted to read and to sample for so many seconds took `seconds`, until
  // `now`.
  void Computed(double read_seconds, double sample_seconds, double seconds, absl::Time now);

  // The factors; 1 as long as no step has taught them.
  double OfReading(absl::Time now) const { return reading_.At(0, now); }
  double OfSampling(absl::Time now) const { return sampling_.At(0, now); }

 private:
  PredictionPace reading_ = PredictionPace(PredictionPace::Classes::kOne);
  PredictionPace sampling_ = PredictionPace(PredictionPace::Classes::kOne);
};

}  // namespace longview::server
