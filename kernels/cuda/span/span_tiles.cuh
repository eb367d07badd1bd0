// The definitions behind span_forward.cuh, for the files that instantiate them.
#pragma once

#include "kernels/cuda/span/item_kernel.cuh"
#include "kernels/cuda/span/span_forward.cuh"
#include "kernels/cuda/span/tile_program.h"
#include "kernels/cuda/span/variants.h"

namespace longview::kernels::cuda {

template <Element kElement>
Status PrepareTiles() {
  for (const int padded_dim : kPaddedDims) {
    const Status status = WithPaddedDim(padded_dim, []<int kD>(HeadDim<kD>) {
      return AllowShared<TileProgram<DeviceMachine, kD, kElement>>();
    });
    if (status != 0) return status;
  }
  return 0;
}

template <Element kElement>
Status LaunchTiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                   const SpanLaunch& launch) {
  return WithPaddedDim(launch.padded_dim, [&]<int kD>(HeadDim<kD>) {
    return LaunchItems<TileProgram<DeviceMachine, kD, kElement>>(stream, plan, call, launch.items,
                                                                 launch.shared_bytes);
  });
}

}  // namespace longview::kernels::cuda
