// How int8 products run on this machine.
#pragma once

#include "kernels/dense/int8_product.h"

namespace longview::models {

enum class Int8Support {
  kNone,     // Plain loops: slower than fp32.
  kWidened,  // AVX2: by 16-bit products, exact and faster than fp32.
  kNative,   // An int8 dot product (VNNI, AMX), through oneDNN's microkernels.
};

// Chosen once per process. A way whose trial products are not exact is left out.
struct Int8Choice {
  Int8Support support = Int8Support::kNone;
  const kernels::Int8Kernels* kernels = nullptr;
};
const Int8Choice& ChooseInt8();

}  // namespace longview::models
