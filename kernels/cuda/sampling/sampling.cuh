// The kernel of sampling in the plugin's table.
#pragma once

#include "kernels/cuda/sampling/sampling_api.h"

namespace longview::kernels::cuda {

extern const SamplingApi kSamplingApi;

}  // namespace longview::kernels::cuda
