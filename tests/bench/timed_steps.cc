#include "tests/bench/timed_steps.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace longview::bench {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double RelativeError(std::span<const float> got, std::span<const double> wanted) {
  double error = 0, largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double difference = std::abs(got[i] - wanted[i]);
    if (!std::isfinite(difference)) return HUGE_VAL;
    largest = std::max(largest, std::abs(wanted[i]));
    error = std::max(error, difference);
  }
  return largest > 0 ? error / largest : 0;
}

std::vector<int64_t> PositiveNumbers(const std::vector<std::string>& texts) {
  std::vector<int64_t> numbers;
  for (const std::string& text : texts) {
    if (!absl::SimpleAtoi(text, &numbers.emplace_back()) || numbers.back() < 1) {
      Die("not a positive number: " + text);
    }
  }
  return numbers;
}

std::vector<int64_t> Contexts(const std::vector<std::string>& texts) {
  std::vector<int64_t> contexts = PositiveNumbers(texts);
  for (const int64_t context : contexts) {
    if (context % kernels::kBlockSlots != 0) Die("a context is not a multiple of 64");
  }
  return contexts;
}

double TimedSteps::Seconds(const std::function<void()>& work) const {
  const double start = now_();
  work();
  return now_() - start;
}

void TimedSteps::Round(int steps) {
  for (int i = 0; i <= steps; ++i) {
    const double seconds = Seconds([&] { contender_.Step(); });
    if (i > 0) steps_.push_back(seconds);
  }
  for (int i = 0; i <= steps; ++i) {
    const double seconds = Seconds(plain_.run);
    if (i > 0) plains_.push_back(seconds);
  }
}

void TimedSteps::Print(const DecodeCase& what) const {
  const auto bytes = static_cast<double>(plain_.bytes);
  const double plain = bytes / Median(plains_);
  const double rate = contender_.read_bytes() / seconds();
  std::printf(
      "%s  %-10s %9.2f ms (least %.2f) %9.2f tokens/s  reads %.3f GB at %.2f GB/s, %.3f of %.2f "
      "(best %.2f)",
      what.Text().c_str(), contender_.name(), seconds() * 1e3,
      *std::min_element(steps_.begin(), steps_.end()) * 1e3, what.batch / seconds(),
      contender_.read_bytes() * 1e-9, rate * 1e-9, rate / plain, plain * 1e-9,
      bytes * 1e-9 / *std::min_element(plains_.begin(), plains_.end()));
  if (error_ > 0) std::printf("; error %.2g", error_);
  std::printf("\n");
}

void Race(const DecodeCase& what, int rounds, int steps, TimedSteps& own, TimedSteps* full) {
  for (int i = 0; i < rounds; ++i) {
    own.Round(steps);
    if (full != nullptr) full->Round(steps);
  }
  own.Print(what);
  if (full == nullptr) return;
  full->Print(what);
  std::printf("%s  projection cache: %.2f times the tokens per second\n", what.Text().c_str(),
              full->seconds() / own.seconds());
}

}  // namespace longview::bench
