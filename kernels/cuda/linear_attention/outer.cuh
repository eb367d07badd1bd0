// The kernel of causal sums in the plugin's table.
#pragma once

#include "kernels/cuda/linear_attention/outer_api.h"

namespace longview::kernels::cuda {

extern const OuterApi kOuterApi;

}  // namespace longview::kernels::cuda
