// Performer's kernels in the plugin's table.
#pragma once

#include "kernels/cuda/vision/performer_api.h"

namespace longview::kernels::cuda {

extern const PerformerApi kPerformerApi;

}  // namespace longview::kernels::cuda
