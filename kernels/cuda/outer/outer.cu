#include "kernels/cuda/outer/outer.cuh"

#include "kernels/cuda/program.cuh"
#include "kernels/cuda/outer/outer_program.h"

namespace longview::kernels::cuda {

const OuterApi kOuterApi = {.append = DeviceRunner::Run<OuterProgram>};

}  // namespace longview::kernels::cuda
