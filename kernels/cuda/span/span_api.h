// The plugin's attention: kernels over an uploaded plan. Part of plugin_api.h's table.
//
// A run is `forward`, then `merge` if the plan has unfinished states. `items` and `merges` may be
// those of the image's capacity: blocks beyond the image's own counts do nothing, so that a
// recorded graph serves every plan of its capacity.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/cuda/span/plan_image.h"
#include "kernels/cuda/span/span_call.h"

namespace longview::kernels::cuda {

// Kernels that can run a call; launch_shape.h chooses.
enum class SpanKernel : int32_t {
  kReference = 0,   // One thread a row, fp32 arithmetic; slow.
  kTiles = 1,       // 64 rows a block; tensor cores for 16-bit calls.
  kRows = 2,        // A row at a time, laid out for reading keys.
  kWarpgroups = 3,  // kTiles by wgmma and TMA, for devices that have both.
};

struct SpanLaunch {
  SpanKernel kernel;
  int32_t padded_dim;    // 32, 64, 96 or 128, at least Dk and Dv; kWarpgroups: 64 or 128.
  int32_t items;         // Blocks to launch, one an item.
  int32_t merges;        // Rows to merge afterwards.
  int32_t shared_bytes;  // For one block of kTiles or kWarpgroups.
};

struct SpanApi {
  // Raises the limits of shared memory of all kernels on a device; once, before the first launch.
  Status (*prepare)(int32_t device);
  // 1: the device runs kWarpgroups, as compute capability 9.0 does.
  int32_t (*warpgroups)(int32_t device);
  Status (*forward)(Stream* stream, const PlanView* plan, const SpanCall* call,
                    const SpanLaunch* launch);
  Status (*merge)(Stream* stream, const PlanView* plan, const SpanCall* call,
                  const SpanLaunch* launch);
};

}  // namespace longview::kernels::cuda
