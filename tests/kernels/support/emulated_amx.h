// The AMX kernel with its tile unit emulated: all of its addressing and softmax runs on any
// CPU with AVX512-BF16, only the eight tile instructions themselves do not.
#pragma once

#include "kernels/span/vector_ops.h"

namespace longview::kernels::testing {

extern const VectorOps kEmulatedAmxOps;

}  // namespace longview::kernels::testing
