#include "kernels/cuda/outer/outer.cuh"

#include "kernels/cuda/outer/outer_table.h"
#include "kernels/cuda/program.cuh"

namespace longview::kernels::cuda {

const OuterApi kOuterApi = OuterTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
