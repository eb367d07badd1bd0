// Runs block programs (program.h) on a device.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/base/checked.cuh"
#include "kernels/cuda/base/program.h"

namespace longview::kernels::cuda {

template <typename Program>
__global__ void __launch_bounds__(Program::kThreads)
    ProgramKernel(const __grid_constant__ typename Program::Args args) {
  __shared__ typename Program::Shared shared;
  typename Program::Thread mine;
  const Block block = {blockIdx.x, static_cast<int>(blockIdx.y)};
  const int thread = static_cast<int>(threadIdx.x);
  const int phases = Program::Phases(args, block);
  for (int phase = 0; phase < phases; ++phase) {
    Program::Phase(args, block, phase, thread, mine, shared);
    __syncthreads();
  }
}

// Hands programs to a device's stream; see program_runner.h.
struct DeviceRunner {
  // An empty grid is no work.
  template <typename Program>
  static Status Run(Stream* stream, const typename Program::Args& args) {
    const Grid grid = Program::GridOf(args);
    if (grid.x == 0 || grid.y == 0) return 0;
    LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
    const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y));
    ProgramKernel<Program><<<blocks, Program::kThreads, 0, stream->stream>>>(args);
    return LaunchStatus();
  }
};

}  // namespace longview::kernels::cuda
