// The attention of a device that is the host: span_api.h over the emulated machine.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/span/span_api.h"

namespace longview::kernels::cuda::testing {

// Falling: warps run last to first and copies arrive as late as the program lets them.
SpanApi EmulatedSpanApi(ThreadOrder order);

// Boxes that kWarpgroups asked for so far, in all calls.
int64_t EmulatedBoxes();

}  // namespace longview::kernels::cuda::testing
