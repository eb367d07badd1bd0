// The requests of a load test and their times: an open loop, which a slow server does not slow.
//
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace longview::client {

struct Arrival {
  double seconds;  // After the start.
  int request;     // Index of the request to send.
};

// Poisson arrivals in [0, duration), sorted: rate * duration of them whatever the seed, rounded and
// at least one, so that a short test sends what it says; gaps are 1 / rate seconds on average.
// Each picks one of `requests` at random. The same seed gives the same plan.
//
// REQUIRES: rate > 0, duration > 0, requests > 0.
std::vector<Arrival> PoissonArrivals(double rate, double duration, int requests, uint32_t seed);

// Random token ids, first and last as a RoBERTa tokenizer has them; ids stay below 500, so that
// every vocabulary has them.
//
// REQUIRES: length >= 2.
std::vector<int32_t> RandomTokens(int length, uint32_t seed);

}  // namespace longview::client
