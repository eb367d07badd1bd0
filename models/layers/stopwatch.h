// Seconds by part of the work, for calibration and benchmarks.
#pragma once

#include <chrono>

namespace longview::models {

// By what limits the work.
struct EncoderTimes {
  double linears = 0;
  double attention = 0;
  double rest = 0;
};

// Adds the seconds it lives to *sum, unless null. For one thread.
class Stopwatch {
 public:
  explicit Stopwatch(double* sum) : sum_(sum), start_(Clock::now()) {}
  ~Stopwatch() { Stop(); }
  void Stop() {
    if (sum_ != nullptr) *sum_ += std::chrono::duration<double>(Clock::now() - start_).count();
    sum_ = nullptr;
  }
  Stopwatch(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double* sum_;
  Clock::time_point start_;
};

}  // namespace longview::models
