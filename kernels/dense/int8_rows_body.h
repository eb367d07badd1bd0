// Row operations around an int8 product. Included by files of one instruction set each, which the
// compiler vectorises for; every one rounds alike, so all of them agree in bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/dense/int8_product.h"

namespace longview::kernels {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u;

inline uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float FloatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline float Widen(float x) { return x; }
inline float Widen(uint16_t x) { return FloatOf(static_cast<uint32_t>(x) << 16); }

// Magnitudes are compared as integers: a loop that compilers vectorise, and NaN counts as large.
template <typename X, typename Q, int kShift>
float QuantizeRow(const X* x, int64_t in, void* out) {
  auto* q = static_cast<Q*>(out);
  const int64_t columns = (in + 3) / 4 * 4;
  int32_t largest = 0;
  for (int64_t i = 0; i < in; ++i) {
    const auto bits = static_cast<int32_t>(BitsOf(Widen(x[i])) & kMagnitude);
    largest = bits > largest ? bits : largest;
  }
  for (int64_t i = in; i < columns; ++i) q[i] = kShift;
  const float most = FloatOf(static_cast<uint32_t>(largest));
  const float scale = most / 127.0f, inverse = 127.0f / most;
  // A largest magnitude whose inverse overflows is as good as zero.
  if (largest >= static_cast<int32_t>(kInfinity) || BitsOf(inverse) >= kInfinity) {
    for (int64_t i = 0; i < in; ++i) q[i] = kShift;
    return largest >= static_cast<int32_t>(kInfinity) ? FloatOf(0x7fc00000u) : 0.0f;
  }
  // Adding 1.5 x 2^23 rounds to the nearest even integer.
  constexpr float kRound = 12582912.0f;
  for (int64_t i = 0; i < in; ++i) {
    const float rounded = (Widen(x[i]) * inverse + kRound) - kRound;
    q[i] = static_cast<Q>(static_cast<int32_t>(rounded) + kShift);
  }
  return scale;
}

inline void Narrow(float x, float* y) { *y = x; }
// To nearest even; NaN stays one.
inline void Narrow(float x, uint16_t* y) {
  const uint32_t bits = BitsOf(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  *y = static_cast<uint16_t>((bits & kMagnitude) > kInfinity ? 0x7fc0u : rounded);
}

template <typename Y>
void DequantizeRow(const int32_t* sums, const int32_t* offsets, const float* scales,
                   float row_scale, int64_t count, Y* y) {
  for (int64_t o = 0; o < count; ++o) {
    Narrow(static_cast<float>(sums[o] - offsets[o]) * scales[o] * row_scale, y + o);
  }
}

// The operations of this file's instruction set on activations of type Q, shifted by kShift.
template <typename Q, int kShift>
constexpr Int8Kernels MakeInt8Kernels(const char* name, decltype(Int8Kernels::multiply) multiply) {
  return {.name = name,
          .element_bytes = sizeof(Q),
          .shift = kShift,
          .quantize = QuantizeRow<float, Q, kShift>,
          .quantize_bf16 = QuantizeRow<uint16_t, Q, kShift>,
          .multiply = multiply,
          .dequantize = DequantizeRow<float>,
          .dequantize_bf16 = DequantizeRow<uint16_t>};
}

}  // namespace
}  // namespace longview::kernels
