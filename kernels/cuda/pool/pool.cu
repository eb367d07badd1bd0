#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/pool/pool_programs.h"

namespace longview::kernels::cuda {

const PoolApi kPoolApi = PoolTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
