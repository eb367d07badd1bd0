// The tensor-core forward of one element type; one file per type instantiates it, so that they
// compile side by side.
#pragma once

#include "kernels/cuda/checked.cuh"
#include "kernels/cuda/span/device_machine.cuh"
#include "kernels/cuda/span/span_api.h"
#include "kernels/cuda/span/span_tile.h"

namespace longview::kernels::cuda {

template <int kD, Element kElement>
__global__ void __launch_bounds__(kTileThreads)
    SpanTileKernel(const __grid_constant__ PlanView plan, const __grid_constant__ SpanCall call) {
  extern __shared__ __align__(16) uint16_t shared[];
  if (static_cast<int32_t>(blockIdx.x) >= plan.counts->items) return;
  const Item item = plan.items[blockIdx.x];
  DeviceMachine machine(shared);
  typename SpanTile<DeviceMachine, kD, kElement>::Lanes lanes;
  SpanTile<DeviceMachine, kD, kElement>(machine, plan, call, item).Run(lanes);
}

template <int kD, Element kElement>
Status PrepareSpanTile() {
  return ToStatus(cudaFuncSetAttribute(SpanTileKernel<kD, kElement>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       TileShared<kD>::kBytesWithBias));
}

template <int kD, Element kElement>
Status LaunchSpanTile(Stream* stream, const PlanView& plan, const SpanCall& call,
                      const SpanLaunch& launch) {
  SpanTileKernel<kD, kElement>
      <<<launch.items, kTileThreads, launch.shared_bytes, stream->stream>>>(plan, call);
  return LaunchStatus();
}

template <Element kElement>
Status PrepareSpanTiles() {
  for (Status (*prepare)() : {PrepareSpanTile<32, kElement>, PrepareSpanTile<64, kElement>,
                              PrepareSpanTile<96, kElement>, PrepareSpanTile<128, kElement>}) {
    if (const Status status = prepare(); status != 0) return status;
  }
  return 0;
}

template <Element kElement>
Status LaunchSpanTiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                       const SpanLaunch& launch) {
  switch (launch.padded_dim) {
    case 32:
      return LaunchSpanTile<32, kElement>(stream, plan, call, launch);
    case 64:
      return LaunchSpanTile<64, kElement>(stream, plan, call, launch);
    case 96:
      return LaunchSpanTile<96, kElement>(stream, plan, call, launch);
    case 128:
      return LaunchSpanTile<128, kElement>(stream, plan, call, launch);
    default:
      return ToStatus(cudaErrorInvalidValue);
  }
}

// span_rows.cu: items of few rows, any type.
Status LaunchSpanRows(Stream* stream, const PlanView& plan, const SpanCall& call,
                      const SpanLaunch& launch);

Status PrepareFloat32Tiles();
Status PrepareBFloat16Tiles();
Status PrepareFloat16Tiles();
Status LaunchFloat32Tiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                          const SpanLaunch& launch);
Status LaunchBFloat16Tiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                           const SpanLaunch& launch);
Status LaunchFloat16Tiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                          const SpanLaunch& launch);

}  // namespace longview::kernels::cuda
