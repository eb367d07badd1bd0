// What a document costs: operations in closed form by what limits them, seconds by rates that are
// measured at warm-up.
#pragma once

#include <chrono>

namespace longview::models {

struct EncoderWork {
  double linear = 0;     // Multiply-adds of linears.
  double attention = 0;  // Multiply-adds of scores and weighted sums.
  double rows = 0;       // Elements of biases, activations, norms.

  EncoderWork& operator+=(const EncoderWork& other) {
    linear += other.linear;
    attention += other.attention;
    rows += other.rows;
    return *this;
  }
};

// Measured on this machine by WarmUp; before it, a guess that errs on the slow side.
struct EncoderRates {
  double fixed_seconds = 2e-4;      // Per run.
  double linear_seconds = 1 / 5e9;  // Per multiply-add.
  double attention_seconds = 1 / 2e9;
  double row_seconds = 1 / 2e8;

  double Seconds(const EncoderWork& work) const {
    return fixed_seconds + work.linear * linear_seconds + work.attention * attention_seconds +
           work.rows * row_seconds;
  }
};

// Seconds by the same parts, for calibration and benchmarks.
struct EncoderTimes {
  double linears = 0;
  double attention = 0;
  double rest = 0;
};

// Adds the seconds it lives to *sum, unless null.
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
