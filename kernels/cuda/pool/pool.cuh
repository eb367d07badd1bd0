// The pooling kernels of the plugin's table.
#pragma once

#include "kernels/cuda/pool/pool_api.h"

namespace longview::kernels::cuda {

extern const PoolApi kPoolApi;

}  // namespace longview::kernels::cuda
