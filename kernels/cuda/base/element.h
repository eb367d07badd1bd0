// Elements of tensors on a device, one by one, on either side. The fast kernels convert whole
// registers instead; this is for their edges, the reference kernel and tests.
//
// Stateless functions: thread-safe.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

using Element = DType;

LONGVIEW_HD inline int ElementBytes(Element element) {
  return element == Element::kFloat32 ? 4 : 2;
}

LONGVIEW_HD inline uint32_t FloatBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

LONGVIEW_HD inline float FloatOfBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

LONGVIEW_HD inline float FloatOfBFloat16(uint16_t bits) {
  return FloatOfBits(static_cast<uint32_t>(bits) << 16);
}

// To nearest, ties to even; a NaN stays a quiet NaN.
LONGVIEW_HD inline uint16_t BFloat16OfFloat(float value) {
  const uint32_t bits = FloatBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

LONGVIEW_HD inline float FloatOfFloat16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  if (magnitude >= 0x0f800000u) return FloatOfBits(sign | 0x7f800000u | magnitude);
  // Exponents are biased by 15 there and by 127 here: times 2^112, exact also for subnormals.
  return FloatOfBits(sign | FloatBits(FloatOfBits(magnitude) * 0x1p112f));
}

// To nearest, ties to even; beyond the largest half is infinity; a NaN stays a quiet NaN.
LONGVIEW_HD inline uint16_t Float16OfFloat(float value) {
  const uint32_t bits = FloatBits(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above.
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves the multiple of 2^-24 in the low bits, rounded to even.
    const float shifted = FloatOfBits(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(FloatBits(shifted) - 0x3f000000u);
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}

LONGVIEW_HD inline float FloatOf16(Element element, uint16_t bits) {
  return element == Element::kBFloat16 ? FloatOfBFloat16(bits) : FloatOfFloat16(bits);
}

LONGVIEW_HD inline uint16_t Of16(Element element, float value) {
  return element == Element::kBFloat16 ? BFloat16OfFloat(value) : Float16OfFloat(value);
}

LONGVIEW_HD inline float LoadElement(const void* data, Element element, int64_t index) {
  if (element == Element::kFloat32) return static_cast<const float*>(data)[index];
  return FloatOf16(element, static_cast<const uint16_t*>(data)[index]);
}

LONGVIEW_HD inline void StoreElement(void* data, Element element, int64_t index, float value) {
  if (element == Element::kFloat32) {
    static_cast<float*>(data)[index] = value;
  } else {
    static_cast<uint16_t*>(data)[index] = Of16(element, value);
  }
}

}  // namespace longview::kernels::cuda
