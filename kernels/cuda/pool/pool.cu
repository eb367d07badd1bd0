#include "kernels/cuda/pool/pool.cuh"

#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/pool/pool_table.h"

namespace longview::kernels::cuda {

const PoolApi kPoolApi = PoolTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
