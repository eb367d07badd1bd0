#include "kernels/cuda/vision/performer.cuh"

#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/vision/performer_table.h"

namespace longview::kernels::cuda {

const PerformerApi kPerformerApi = PerformerTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
