// Random numbers that are a function of a key and a counter: Philox4x32-10 (Salmon, Moraes, Dror
// and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). A draw depends on who draws and
// when, not on what else is drawn in between, nor where.
// Thread-safe: pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace longview::kernels {

constexpr std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = kMultiply0 * counter[0];
    const uint64_t b = kMultiply1 * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// Uniform in [0, 1), 53 bits: of the request's seed, sample (or beam), step and place in the step.
constexpr double Uniform(uint32_t seed, uint32_t sample, uint32_t step, uint32_t place = 0) {
  const std::array<uint32_t, 4> bits = Philox({step, place, 0, 0}, {seed, sample});
  const uint64_t word = (uint64_t{bits[0]} << 32 | bits[1]) >> 11;
  return static_cast<double>(word) * 0x1p-53;
}

}  // namespace longview::kernels
