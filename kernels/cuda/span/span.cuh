// The attention kernels of the plugin's table.
#pragma once

#include "kernels/cuda/span/span_api.h"

namespace longview::kernels::cuda {

extern const SpanApi kSpanApi;

}  // namespace longview::kernels::cuda
