// Elements of device tensors whose type is known to the compiler: float, or one of two 16-bit types
// as raw bits. Rounding is that of span/element.h, on both sides.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/element.h"

namespace longview::kernels::cuda {

enum class BFloat16 : uint16_t {};
enum class Float16 : uint16_t {};

LONGVIEW_HD inline float Widen(float value) { return value; }

LONGVIEW_HD inline float Widen(BFloat16 bits) {
  return FloatOfBFloat16(static_cast<uint16_t>(bits));
}

LONGVIEW_HD inline float Widen(Float16 bits) { return FloatOfFloat16(static_cast<uint16_t>(bits)); }

LONGVIEW_HD inline void Narrow(float value, float* to) { *to = value; }

LONGVIEW_HD inline void Narrow(float value, BFloat16* to) {
  *to = static_cast<BFloat16>(BFloat16OfFloat(value));
}

LONGVIEW_HD inline void Narrow(float value, Float16* to) {
  *to = static_cast<Float16>(Float16OfFloat(value));
}

}  // namespace longview::kernels::cuda
