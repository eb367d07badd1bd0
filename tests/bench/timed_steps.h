// Steps of a contender and a loop that does nothing but move as much memory, timed in turns: what
// a step reaches of the memory's rate in the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/lm_contenders.h"

namespace longview::bench {

inline constexpr int64_t kMostPlainBytes = int64_t{1} << 30;  // Most bytes a plain loop moves.

double Median(std::vector<double> values);

// The largest difference of the two, over the largest wanted; infinite where one is not a number.
double RelativeError(std::span<const float> got, std::span<const double> wanted);

// Positive numbers. Ends the process with a message where one is not.
std::vector<int64_t> PositiveNumbers(const std::vector<std::string>& texts);
// PositiveNumbers that are multiples of 64: random rows stand for whole segments and blocks.
std::vector<int64_t> Contexts(const std::vector<std::string>& texts);

// Used by one thread. Borrows the contender.
class TimedSteps {
 public:
  struct Plain {
    int64_t bytes = 0;  // Moved by one `run`.
    std::function<void()> run;
  };
  // `error`: of a step, as it was found before. `now`: seconds of a clock.
  TimedSteps(Contender& contender, double error, Plain plain, std::function<double()> now)
      : contender_(contender), error_(error), plain_(std::move(plain)), now_(std::move(now)) {}

  // So many steps, then as many plain loops, after one of each that does not count.
  void Round(int steps);

  double seconds() const { return Median(steps_); }

  void Print(const DecodeCase& what) const;

 private:
  double Seconds(const std::function<void()>& work) const;

  Contender& contender_;
  const double error_;
  const Plain plain_;
  const std::function<double()> now_;
  std::vector<double> steps_, plains_;
};

// Rounds of both in turns; prints what each took and how much faster the projection cache is.
// `full`: null where it is left out.
void Race(const DecodeCase& what, int rounds, int steps, TimedSteps& own, TimedSteps* full);

}  // namespace longview::bench
