// A forward program as a kernel: a thread block per item of the plan.
#pragma once

#include "kernels/cuda/base/checked.cuh"
#include "kernels/cuda/span/device_machine.cuh"
#include "kernels/cuda/span/span_api.h"

namespace longview::kernels::cuda {

template <class Program>
__global__ void __launch_bounds__(Program::kThreads)
    ItemKernel(const __grid_constant__ PlanView plan, const __grid_constant__ SpanCall call) {
  extern __shared__ __align__(16) uint16_t shared[];
  if (static_cast<int32_t>(blockIdx.x) >= plan.counts->items) return;
  const Item item = plan.items[blockIdx.x];
  DeviceMachine machine(shared);
  typename Program::Lanes lanes;
  Program(machine, plan, call, item).Run(lanes);
}

// Allows blocks the most shared memory that the program may ask for.
template <class Program>
Status AllowShared() {
  return ToStatus(cudaFuncSetAttribute(ItemKernel<Program>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       Program::Shared::kBytesWithBias));
}

// REQUIRES: on the stream's device; beyond 48 KB, AllowShared was called.
template <class Program>
Status LaunchItems(Stream* stream, const PlanView& plan, const SpanCall& call, int items,
                   int shared_bytes) {
  ItemKernel<Program><<<items, Program::kThreads, shared_bytes, stream->stream>>>(plan, call);
  return LaunchStatus();
}

}  // namespace longview::kernels::cuda
