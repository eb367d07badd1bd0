// The measured cost of one model's requests: foresight for those whose cost is not known yet,
// and a correction of what the model predicts (prediction_pace.h).
//
// Expected: seconds per byte of request, from those prepared before. Requests differ, and the model
// has not seen this one, so only half of that is expected, and never more than half of the dearest
// of late: a text that will be cut, or a picture that will be shrunk, has many bytes that cost
// nothing.
// Not thread-safe.
#pragma once

#include <cstddef>

#include "absl/time/time.h"
#include "server/engine/prediction_pace.h"

namespace longview::server {

class CostHistory {
 public:
  // A request of so many bytes was prepared, and the model predicts so many seconds for it; where
  // it generates, so many of them for its prompt.
  void Prepared(size_t bytes, double predicted_seconds, double prompt_seconds = 0);

  // A batch of `items` for which the model predicted so many seconds took so many, until `now`.
  void Computed(double predicted_seconds, size_t items, double seconds, absl::Time now) {
    pace_.Computed(predicted_seconds, items, seconds, now);
  }

  // Expected seconds of a request of so many bytes, as the model would predict them; 0 = unknown.
  double Expected(size_t bytes) const;
  // The part of expected seconds that is for prompts.
  double PromptShare() const { return seconds_ > 0 ? prompt_seconds_ / seconds_ : 0; }

  // Seconds that an item takes over those predicted by the model, of late.
  double PaceOf(double predicted_seconds, absl::Time now) const {
    return pace_.At(predicted_seconds, now);
  }

 private:
  // Averages over prepared requests, the last ones counting most.
  double bytes_ = 0;
  double seconds_ = 0;
  double prompt_seconds_ = 0;
  double dearest_ = 0;
  PredictionPace pace_ = PredictionPace(PredictionPace::Classes::kBySize);
};

}  // namespace longview::server
