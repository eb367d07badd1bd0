// Elements of tensors on a device, one by one, on either side. The fast kernels convert whole
// registers instead; this is for their edges, the reference kernel and tests.
//
// Stateless functions: thread-safe.
#pragma once

#include <cstdint>
#include <cstring>

namespace longview::kernels::cuda {

// On a device there is one 16-bit type more than kernels::DType knows.
enum class Element : int32_t { kFloat32 = 0, kBFloat16 = 1, kFloat16 = 2 };

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
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1fu) return FloatOfBits(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return FloatOfBits(sign | ((exponent + 112) << 23) | (fraction << 13));
  // Zero and subnormals: fraction * 2^-24, exact in float.
  const float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-8f;
  return FloatOfBits(sign | FloatBits(magnitude));
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
