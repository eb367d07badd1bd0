// Rates of a machine for a model's forward, from runs that are timed by parts.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/cost/best_rates.h"

namespace longview::models {

// Work that is done to measure it: `seconds` runs it, adds its parts to the times (which may be
// null) and returns how long it took in all.
struct SampleRun {
  EncoderWork work;
  absl::FunctionRef<absl::StatusOr<double>(RunTimes*)> seconds;
};

// Adds a moment to the best rates there were: those of `large`, which fills panels and windows, and
// the fixed price of a run, which is what `brief` takes beyond its operations. Without a brief one
// it is what the large one takes.
absl::StatusOr<EncoderRates> Calibrate(const SampleRun& large, const SampleRun* brief,
                                       BestRates& best);

}  // namespace longview::models
