// The best rates of a machine over several moments: neighbours only ever make it slower.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/cost/stopwatch.h"
#include "models/cost/work.h"

namespace longview::models {

// The best of two moments: neighbours make work slower, never faster.
inline EncoderRates BestOf(const EncoderRates& a, const EncoderRates& b) {
  EncoderRates best;
  best.fixed_seconds = std::min(a.fixed_seconds, b.fixed_seconds);
  best.linear_seconds = std::min(a.linear_seconds, b.linear_seconds);
  best.attention_seconds = std::min(a.attention_seconds, b.attention_seconds);
  best.row_seconds = std::min(a.row_seconds, b.row_seconds);
  return best;
}

// Rates of runs that were timed by parts, and the fixed price of a run: what one takes beyond its
// operations.
class BestRates {
 public:
  bool empty() const { return !rates_; }

  // One moment: a run of `work` took `times`; a run of `brief` took `brief_seconds` in all.
  void Add(const EncoderWork& work, const RunTimes& times, const EncoderWork& brief,
           double brief_seconds) {
    EncoderRates moment;
    moment.fixed_seconds = 0;
    moment.linear_seconds = times.linears / std::max(work.linear, 1.0);
    moment.attention_seconds = times.attention / std::max(work.attention, 1.0);
    moment.row_seconds = times.rest / std::max(work.rows, 1.0);
    rates_ = rates_ ? BestOf(*rates_, moment) : moment;
    brief_ = brief;
    brief_seconds_ = std::min(brief_seconds_, brief_seconds);
  }

  // REQUIRES: not empty.
  EncoderRates rates() const {
    EncoderRates rates = *rates_;
    rates.fixed_seconds = std::max(kLeastFixed, brief_seconds_ - rates.Seconds(brief_));
    return rates;
  }

 private:
  static constexpr double kLeastFixed = 5e-5;

  std::optional<EncoderRates> rates_;  // Without the fixed price.
  EncoderWork brief_;
  double brief_seconds_ = std::numeric_limits<double>::infinity();
};

// Work that is done to measure it: `seconds` runs it, adds its parts to the times (which may be
// null) and returns how long it took in all.
struct SampleRun {
  EncoderWork work;
  absl::FunctionRef<absl::StatusOr<double>(RunTimes*)> seconds;
};

// Adds a moment to the best rates there were: those of `large`, which fills panels and windows, and
// the fixed price of a run, which is what `brief` takes beyond its operations. Without a brief one
// it is what the large one takes.
inline absl::StatusOr<EncoderRates> Calibrate(const SampleRun& large, const SampleRun* brief,
                                              BestRates& best) {
  // The very first run of each pays for code generation.
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
