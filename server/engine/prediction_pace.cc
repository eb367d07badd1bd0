#include "server/engine/prediction_pace.h"

#include <algorithm>
#include <cmath>

namespace longview::server {
namespace {

// A warm-up beside busy neighbours has measured steps of microseconds 200 times too slow.
constexpr double kFastest = 1e-4;
constexpr double kSlowest = 10;
// After so long without work the pace of late says nothing any more. Until then it stays as it is:
// who asks twice hears the same.
constexpr absl::Duration kForget = absl::Seconds(30);
// The work that the pace looks back on, unless batches are short; and the gain of these.
constexpr double kLookBackSeconds = 1;
constexpr double kLeastGain = 1.0 / 16;
// Beyond this the prediction is proved wrong, and half of the distance is believed at once.
const double kProof = std::log(1.5);
constexpr double kProofGain = 0.5;
const double kMostSlower = std::log(2.0);
// Batches until a pace counts as kept up, and how fast a better one from long ago is given up.
constexpr double kKeptUp = 3;
constexpr double kBestGain = 1.0 / 256;
// How fast the pace may fall with the size: of two predictions the larger one stays the larger.
const double kSteepest = 0.9 * std::log(4.0);
// The predicted size of the middle of class 0: 4^-8 seconds.
constexpr double kSmallestLog4 = -8;

}  // namespace

double PredictionPace::Class::Remembered(absl::Time now) const {
  return now - computed > kForget ? 0 : 1;
}

double PredictionPace::Class::LogPace(absl::Time now) const {
  return log_best + (log_pace - log_best) * Remembered(now);
}

double PredictionPace::PlaceOf(double predicted_seconds) const {
  if (!by_size_) return 0;
  const double log4 = std::log2(std::max(predicted_seconds, 1e-9)) / 2;
  return std::clamp(log4 - kSmallestLog4, 0.0, kClasses - 1.0);
}

void PredictionPace::Computed(double predicted_seconds, size_t items, double seconds,
                              absl::Time now) {
  if (predicted_seconds <= 0 || seconds <= 0) return;
  const double size = predicted_seconds / static_cast<double>(items);
  const double place = PlaceOf(size);
  Class& one = classes_[static_cast<size_t>(std::lround(place))];
  const absl::Time start = now - absl::Seconds(seconds);
  const double before = one.seen ? one.LogPace(start) : std::log(At(size, start));
  if (one.Remembered(start) < 1) one.count = std::min(one.count, kKeptUp);
  const double error = std::log(seconds / predicted_seconds) - before;
  const double work = std::min(seconds, predicted_seconds * std::exp(before));
  double gain = std::max({1 / (one.count + 1), kLeastGain, work / (work + kLookBackSeconds)});
  if (error < -kProof) gain = std::max(gain, kProofGain);
  one.log_pace = std::clamp(before + gain * std::min(error, kMostSlower), std::log(kFastest),
                            std::log(kSlowest));
  one.count += 1;
  one.place = one.seen ? one.place + gain * (place - one.place) : place;
  one.computed = now;
  one.seen = true;
  if (one.log_pace < one.log_best && one.count >= kKeptUp) {
    one.log_best = one.log_pace;
  } else {
    one.log_best += kBestGain * (one.log_pace - one.log_best);
  }
}

double PredictionPace::At(double predicted_seconds, absl::Time now) const {
  const double place = PlaceOf(predicted_seconds);
  const Class* below = nullptr;
  const Class* above = nullptr;
  for (const Class& one : classes_) {
    if (!one.seen) continue;
    if (one.place <= place) {
      below = &one;
    } else if (above == nullptr) {
      above = &one;
    }
  }
  if (below == nullptr && above == nullptr) return 1;
  if (below == nullptr) return std::exp(above->LogPace(now));
  double log_pace = below->LogPace(now);
  if (above != nullptr) {
    const double share = (place - below->place) / (above->place - below->place);
    log_pace += share * (above->LogPace(now) - log_pace);
  }
  for (const Class& one : classes_) {
    if (!one.seen || one.place > place) continue;
    log_pace = std::max(log_pace, one.LogPace(now) - kSteepest * (place - one.place));
  }
  return std::exp(log_pace);
}

}  // namespace longview::server
