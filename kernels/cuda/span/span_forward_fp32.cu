// The fp32 forward's kernels; see span_float_tile.h.
#include "kernels/cuda/span/span_float_tile.h"

#include "kernels/cuda/checked.cuh"
#include "kernels/cuda/span/device_machine.cuh"
#include "kernels/cuda/span/span_forward.cuh"

namespace longview::kernels::cuda {
namespace {

template <int kD>
__global__ void __launch_bounds__(kFloatTileThreads)
    SpanFloatTileKernel(const __grid_constant__ PlanView plan,
                        const __grid_constant__ SpanCall call) {
  extern __shared__ __align__(16) uint16_t shared[];
  if (static_cast<int32_t>(blockIdx.x) >= plan.counts->items) return;
  const Item item = plan.items[blockIdx.x];
  DeviceMachine machine(shared);
  typename SpanFloatTile<DeviceMachine, kD>::Lanes lanes;
  SpanFloatTile<DeviceMachine, kD>(machine, plan, call, item).Run(lanes);
}

template <int kD>
Status Prepare() {
  return ToStatus(cudaFuncSetAttribute(SpanFloatTileKernel<kD>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       FloatTileShared<kD>::kBytes));
}

template <int kD>
Status Launch(Stream* stream, const PlanView& plan, const SpanCall& call, int items) {
  SpanFloatTileKernel<kD>
      <<<items, kFloatTileThreads, FloatTileShared<kD>::kBytes, stream->stream>>>(plan, call);
  return LaunchStatus();
}

}  // namespace

Status PrepareFloat32Tiles() {
  for (Status (*prepare)() : {Prepare<32>, Prepare<64>, Prepare<96>, Prepare<128>}) {
    if (const Status status = prepare(); status != 0) return status;
  }
  return 0;
}

Status LaunchFloat32Tiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                          const SpanLaunch& launch) {
  switch (launch.padded_dim) {
    case 32:
      return Launch<32>(stream, plan, call, launch.items);
    case 64:
      return Launch<64>(stream, plan, call, launch.items);
    case 96:
      return Launch<96>(stream, plan, call, launch.items);
    case 128:
      return Launch<128>(stream, plan, call, launch.items);
    default:
      return ToStatus(cudaErrorInvalidValue);
  }
}

}  // namespace longview::kernels::cuda
