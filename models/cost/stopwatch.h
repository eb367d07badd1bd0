// Seconds by part of the work, for calibration and benchmarks.
#pragma once

#include <chrono>

#include "models/pauses.h"

namespace longview::models {

// Seconds on a clock that stands still while others run in the calling thread's pauses.
inline double ComputeClock() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count() - PausedSeconds();
}

// Seconds of a run by what limits the work, and of a detector's run by its stages besides.
struct RunTimes {
  double linears = 0;
  double attention = 0;
  double rest = 0;

  double prepare = 0;   // Normalising pictures.
  double backbone = 0;  // With its maps.
  double head = 0;      // Pyramid, towers, regions, masks, choosing among candidates.
  double choose =
      0;  // Candidates and suppression alone: part of `head`, in none of the first three.
  double finish = 0;  // Back to the given picture: clipping, tiles, masks as runs.
};

// Adds the seconds it lives to *sum by the ComputeClock, unless null. For one thread.
class Stopwatch {
 public:
  explicit Stopwatch(double* sum) : sum_(sum), start_(sum == nullptr ? 0 : ComputeClock()) {}
  ~Stopwatch() { Stop(); }
  void Stop() {
    if (sum_ != nullptr) *sum_ += ComputeClock() - start_;
    sum_ = nullptr;
  }
  Stopwatch(const Stopwatch&) = delete;

 private:
  double* sum_;
  double start_;
};

}  // namespace longview::models
