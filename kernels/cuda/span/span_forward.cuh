// The forward's launches. Every element of kTiles is instantiated in a file of its own
// (span_forward_*.cu), so that they compile side by side.
#pragma once

#include "kernels/cuda/span/span_api.h"

namespace longview::kernels::cuda {

// Raises the kernels' limits of shared memory on the device at hand.
template <Element kElement>
Status PrepareTiles();

// REQUIRES: on the stream's device.
template <Element kElement>
Status LaunchTiles(Stream* stream, const PlanView& plan, const SpanCall& call,
                   const SpanLaunch& launch);

// span_rows.cu: items of few rows, any element.
Status LaunchSpanRows(Stream* stream, const PlanView& plan, const SpanCall& call,
                      const SpanLaunch& launch);

// span_warpgroup.cu: REQUIRES of the launch that the device at hand HasWarpgroups, and a 16-bit
// call.
bool HasWarpgroups();
Status PrepareWarpgroups();  // Nothing on other devices.
Status LaunchWarpgroups(Stream* stream, const PlanView& plan, const SpanCall& call,
                        const SpanLaunch& launch);

}  // namespace longview::kernels::cuda
