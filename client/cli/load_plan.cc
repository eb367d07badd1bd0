#include "client/cli/load_plan.h"

#include <random>

namespace longview::client {

std::vector<Arrival> PoissonArrivals(double rate, double duration, int requests, uint32_t seed) {
  std::mt19937 generator(seed);
  std::exponential_distribution<double> gap(rate);
  std::uniform_int_distribution<int> pick(0, requests - 1);
  std::vector<Arrival> arrivals;
  for (double t = gap(generator); t < duration; t += gap(generator)) {
    arrivals.push_back({t, pick(generator)});
  }
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
