#include "kernels/cuda/span/launch_shape.h"
#include "models/ops/attend.h"
#include "models/ops/device_backend.h"

namespace longview::models::ops {
namespace {

// Builds the call for a device from the host's, tensors and all.
kernels::cuda::SpanCall SpanCallOf(const kernels::Call& call) {
  kernels::cuda::SpanCall span = {};
  span.q = call.q;
  span.out = call.out;
  span.q_row_stride = call.q_row_stride;
  span.q_head_stride = call.q_head_stride;
  span.out_row_stride = call.out_row_stride;
  span.out_head_stride = call.out_head_stride;
  span.element = call.dtype;
  span.Dk = call.Dk;
  span.Dv = call.Dv;
  span.H = call.H;
  span.kv_group = call.kv_group;
  span.scale = call.scale;
  span.sources_used = static_cast<int32_t>(call.sources.size());
  for (size_t i = 0; i < call.sources.size(); ++i) {
    const kernels::Source& from = call.sources[i];
    kernels::cuda::SpanSource& to = span.sources[i];
    to.k = from.k;
    to.v = from.v;
    to.k_row_stride = from.k_row_stride;
    to.k_head_stride = from.k_head_stride;
    to.v_row_stride = from.v_row_stride;
    to.v_head_stride = from.v_head_stride;
    to.block_table = from.block_table;
    to.seq_offset = from.seq_offset;
    to.q_add = from.q_add;
    to.layout = from.layout;
    to.kv_heads = from.kv_heads;
  }
  for (size_t i = 0; i < call.tables.size(); ++i) {
    const kernels::Table& from = call.tables[i];
    kernels::cuda::SpanTable& to = span.tables[i];
    to.data = from.data;
    to.dot_add = from.dot_add;
    to.head_stride = from.head_stride;
    to.entry_stride = from.entry_stride;
    to.element = from.dtype;
    to.entries = from.entries;
  }
  return span;
}

}  // namespace

void Attend::OnDevice(DeviceBackend& device) const {
  const DevicePlan& staged = device.PlanOf(plan);
  Carver scratch = device.Scratch();
  std::byte* const partials = scratch.TakeBytes(DevicePartialBytes(staged, call.Dv));
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::attention, [&] {
    using kernels::cuda::SpanPhase;
    models::Attend(device.device(), staged, SpanCallOf(call), partials,
                   plan.decodes ? SpanPhase::kDecode : SpanPhase::kPrefill);
  });
}

}  // namespace longview::models::ops
