#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/linear_attention/outer_program.h"

namespace longview::kernels::cuda {

const OuterApi kOuterApi = OuterTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
