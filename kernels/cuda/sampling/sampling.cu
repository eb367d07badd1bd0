#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/sampling/sample_program.h"

namespace longview::kernels::cuda {

const SamplingApi kSamplingApi = {.sample = DeviceRunner::Run<SampleProgram>};

}  // namespace longview::kernels::cuda
