#include "kernels/cuda/linear_attention/outer.cuh"

#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/linear_attention/outer_table.h"

namespace longview::kernels::cuda {

const OuterApi kOuterApi = OuterTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
