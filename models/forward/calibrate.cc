#include "models/forward/calibrate.h"

namespace longview::models {

// The very first run of each pays for code generation.
absl::StatusOr<EncoderRates> Calibrate(const SampleRun& large, const SampleRun* brief,
                                       BestRates& best) {
  const bool warm = !best.empty();
  for (int run = warm ? 1 : 0; run < 2; ++run) {
    RunTimes times;
    absl::StatusOr<double> seconds = large.seconds(&times);
    if (!seconds.ok()) return seconds.status();
    if (brief != nullptr) seconds = brief->seconds(nullptr);
    if (!seconds.ok()) return seconds.status();
    if (run == 1) best.Add(large.work, times, (brief != nullptr ? brief : &large)->work, *seconds);
  }
  return best.rates();
}

}  // namespace longview::models
