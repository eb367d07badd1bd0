#include "kernels/cuda/sampling/sampling.cuh"

#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/sampling/sample_program.h"

namespace longview::kernels::cuda {

const SamplingApi kSamplingApi = {.sample = DeviceRunner::Run<SampleProgram>};

}  // namespace longview::kernels::cuda
