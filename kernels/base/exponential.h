// exp as sampling takes it: the same bits in every loop, on every machine without contraction of
// products and sums.
// Thread-safe: a pure function.
#pragma once

#include <bit>
#include <cstdint>

namespace longview::kernels {

// Within 2 units in the last place; 0 below -87, NaN included. REQUIRES: x <= 87.
//
// 2^n e^r with n = round(x / ln 2) and |r| <= ln 2 / 2; ln 2 in two parts, the first short enough
// for exact products; the polynomial is the minimax one of Cephes' expf.
constexpr float Exponential(float x) {
  constexpr float kLeast = -87.0F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: the sum's low bits are the integer.
  const float clamped = x > kLeast ? x : kLeast;
  const float shifted = clamped * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = clamped - n * 0.693359375F + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const uint32_t power = (std::bit_cast<uint32_t>(shifted) << 23) + (127U << 23);
  const float value = p * std::bit_cast<float>(power);
  return x >= kLeast ? value : 0.0F;
}

}  // namespace longview::kernels
