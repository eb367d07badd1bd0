// The reference kernel, the merge of unfinished states, and the table of span_api.h.
#include "kernels/cuda/base/checked.cuh"
#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/span/ref_row.h"
#include "kernels/cuda/span/span_api.h"
#include "kernels/cuda/span/span_forward.cuh"
#include "kernels/cuda/span/variants.h"

namespace longview::kernels::cuda {

namespace {

constexpr int kMergeWarps = 4;  // Rows of a block of the merge.

__global__ void __launch_bounds__(kMaxTileRows)
    SpanReferenceKernel(const __grid_constant__ PlanView plan,
                        const __grid_constant__ SpanCall call) {
  if (static_cast<int32_t>(blockIdx.x) >= plan.counts->items) return;
  const Item item = plan.items[blockIdx.x];
  const int row = static_cast<int>(threadIdx.x);
  if (row < plan.tiles[item.tile].rows) RefRow(plan, call, item).Run(row);
}

// One warp a row, a lane every 32nd column.
__global__ void __launch_bounds__(kMergeWarps * 32)
    SpanMergeKernel(const __grid_constant__ PlanView plan, const __grid_constant__ SpanCall call) {
  const int index = static_cast<int>(blockIdx.x) * kMergeWarps + threadIdx.x / 32;
  if (index >= plan.counts->merges) return;
  const Merge merge = plan.merges[index];
  const int64_t at = merge.row * call.out_row_stride + merge.head * call.out_head_stride;
  for (int d = static_cast<int>(threadIdx.x % 32); d < call.Dv; d += 32) {
    StoreElement(call.out, call.element, at + d, MergedElement(call, merge, d));
  }
}

Status Prepare(int32_t device) {
  LONGVIEW_RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  for (Status (*prepare)() : {PrepareTiles<Element::kFloat32>, PrepareTiles<Element::kBFloat16>,
                              PrepareTiles<Element::kFloat16>}) {
    if (const Status status = prepare(); status != 0) return status;
  }
  return PrepareWarpgroups();
}

int32_t Warpgroups(int32_t device) {
  return cudaSetDevice(device) == cudaSuccess && HasWarpgroups() ? 1 : 0;
}

Status Forward(Stream* stream, const PlanView* plan, const SpanCall* call,
               const SpanLaunch* launch) {
  if (launch->items == 0) return 0;
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
  if (launch->kernel == SpanKernel::kReference) {
    SpanReferenceKernel<<<launch->items, kMaxTileRows, 0, stream->stream>>>(*plan, *call);
    return LaunchStatus();
  }
  if (launch->kernel == SpanKernel::kRows) return LaunchSpanRows(stream, *plan, *call, *launch);
  if (launch->kernel == SpanKernel::kWarpgroups) {
    return LaunchWarpgroups(stream, *plan, *call, *launch);
  }
  return WithElement(call->element, [&]<Element kElement>(ElementType<kElement>) {
    return LaunchTiles<kElement>(stream, *plan, *call, *launch);
  });
}

Status MergeStates(Stream* stream, const PlanView* plan, const SpanCall* call,
                   const SpanLaunch* launch) {
  if (launch->merges == 0) return 0;
  LONGVIEW_RETURN_IF_CUDA_ERROR(Enter(stream));
  const int blocks = (launch->merges + kMergeWarps - 1) / kMergeWarps;
  SpanMergeKernel<<<blocks, kMergeWarps * 32, 0, stream->stream>>>(*plan, *call);
  return LaunchStatus();
}

}  // namespace

const SpanApi kSpanApi = {
    .prepare = Prepare, .warpgroups = Warpgroups, .forward = Forward, .merge = MergeStates};

}  // namespace longview::kernels::cuda
