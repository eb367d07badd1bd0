// Elements of device tensors whose type is known to the compiler: float, or bfloat16 as raw bits.
// Rounding is that of kernels/base/bfloat16.h, on both sides.
#pragma once

#include <cstdint>

namespace longview::kernels::cuda {

using BFloat16 = uint16_t;

LONGVIEW_HD inline float Widen(float value) { return value; }

LONGVIEW_HD inline float Widen(BFloat16 bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

LONGVIEW_HD inline void Narrow(float value, float* to) { *to = value; }

// To nearest, ties to even; a NaN stays one.
LONGVIEW_HD inline void Narrow(float value, BFloat16* to) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  *to = static_cast<BFloat16>(nan ? (bits >> 16) | 0x40u : rounded >> 16);
}

}  // namespace longview::kernels::cuda
