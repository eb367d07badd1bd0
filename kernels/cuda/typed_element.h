// Elements of device tensors whose type is known to the compiler: float, or bfloat16 as raw bits.
// Rounding is that of kernels/base/bfloat16.h, on both sides.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/element.h"

namespace longview::kernels::cuda {

using BFloat16 = uint16_t;

LONGVIEW_HD inline float Widen(float value) { return value; }

LONGVIEW_HD inline float Widen(BFloat16 bits) { return FloatOfBFloat16(bits); }

LONGVIEW_HD inline void Narrow(float value, float* to) { *to = value; }

LONGVIEW_HD inline void Narrow(float value, BFloat16* to) { *to = BFloat16OfFloat(value); }

}  // namespace longview::kernels::cuda
