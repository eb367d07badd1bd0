#include "kernels/cuda/pool/pool.cuh"

#include "kernels/cuda/pool/pool_table.h"
#include "kernels/cuda/program.cuh"

namespace longview::kernels::cuda {

const PoolApi kPoolApi = PoolTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
