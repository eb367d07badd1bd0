// Random numbers that are a function of a key and a counter: Philox4x32-10 (Salmon, Moraes, Dror
// and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). A draw depends on who draws and
// when, not on what else is drawn in between.
// Thread-safe: pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace longview::models {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Uniform in [0, 1), 53 bits: of the request's seed, sample (or beam), step and place in the step.
double Uniform(uint32_t seed, uint32_t sample, uint32_t step, uint32_t place = 0);

}  // namespace longview::models
