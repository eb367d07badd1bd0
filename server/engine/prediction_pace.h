// How long work takes over what its model predicts, of late: the number that every prediction is
// multiplied with.
//
// Models predict from what they measured when they were loaded. Neighbours that have the cores now
// make work slower than that; neighbours that had them then make it faster. Both are followed:
//
// * Work that is much faster than predicted proves that the prediction is wrong, so a handful of
//   batches correct it however far off it is.
// * One batch that hung says little about the next: what is slower is followed by a factor of two
//   at most each time, in proportion to the work that was done.
// * While nothing is computed the pace goes back to the best that is known, which is the one that
//   the model has kept up for a while, at first its own prediction: nobody may be refused for ever
//   because of a load that has gone.
//
// A fixed price of a run and a price per token may be wrong by different factors, so the pace is
// learnt by the predicted size of an item, in classes of a factor of four, with interpolation
// between those that were seen.
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>

#include "absl/time/time.h"

namespace longview::server {

class PredictionPace {
 public:
  // Sizes mean nothing to steps, which are parts of what their tickets take: one class for all.
  enum class Classes { kBySize, kOne };
  explicit PredictionPace(Classes classes) : by_size_(classes == Classes::kBySize) {}

  // Work of `items` alike, predicted to take so many seconds in all, took `seconds` until `now`.
  // REQUIRES: items > 0.
  void Computed(double predicted_seconds, size_t items, double seconds, absl::Time now);

  // The factor for an item of that predicted size; from 1e-4 to 10.
  double At(double predicted_seconds, absl::Time now) const;

 private:
  static constexpr int kClasses = 16;
  struct Class {
    bool seen = false;
    double place = 0;     // Average of the sizes that were seen.
    double count = 0;     // Batches, those long ago counting less.
    double log_pace = 0;  // Natural logarithms.
    double log_best = 0;
    absl::Time computed = absl::InfinitePast();  // When log_pace was found.

    // The share of `count` and of the distance to the best that time has left.
    double Remembered(absl::Time now) const;
    double LogPace(absl::Time now) const;
  };

  // Position of a size on the scale of classes; class i covers i - 0.5 to i + 0.5.
  double PlaceOf(double predicted_seconds) const;

  const bool by_size_;
  std::array<Class, kClasses> classes_ = {};
};

}  // namespace longview::server
