#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/vision/performer_programs.h"

namespace longview::kernels::cuda {

const PerformerApi kPerformerApi = PerformerTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
