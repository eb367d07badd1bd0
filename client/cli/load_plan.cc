#include "client/cli/load_plan.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace longview::client {

std::vector<Arrival> PoissonArrivals(double rate, double duration, int requests, uint32_t seed) {
  std::mt19937 generator(seed);
  // A Poisson process of a known number of arrivals has them at independent uniform times.
  std::uniform_real_distribution<double> time(0, duration);
  std::uniform_int_distribution<int> pick(0, requests - 1);
  std::vector<Arrival> arrivals(
      static_cast<size_t>(std::max<int64_t>(1, std::llround(rate * duration))));
  for (Arrival& arrival : arrivals) arrival = {time(generator), pick(generator)};
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.seconds < b.seconds; });
  return arrivals;
}

std::vector<int32_t> RandomTokens(int length, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int32_t> id(4, 499);
  std::vector<int32_t> tokens(length);
  for (int32_t& token : tokens) token = id(generator);
  tokens.front() = 0;
  tokens.back() = 2;
  return tokens;
}

}  // namespace longview::client
