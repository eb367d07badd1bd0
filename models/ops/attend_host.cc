#include <cmath>

#include "models/layers/span_rows.h"
#include "models/ops/attend.h"
#include "models/ops/host_backend.h"

namespace longview::models {

kernels::Call HeadsCall(Compute compute, const Rows& q, const Rows& out, int heads) {
  kernels::Call call;
  call.dtype = SpanType(compute);
  call.q = q.data;
  call.out = out.data;
  call.q_row_stride = q.stride;
  call.out_row_stride = out.stride;
  call.Dk = static_cast<int>(q.width / heads);
  call.Dv = static_cast<int>(out.width / heads);
  call.q_head_stride = call.Dk;
  call.out_head_stride = call.Dv;
  call.H = heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(call.Dk));
  return call;
}

kernels::Source HeadsSource(Compute compute, const Rows& keys, const Rows& values, int heads) {
  kernels::Source source;
  source.k = keys.data;
  source.v = values.data;
  source.dtype = SpanType(compute);
  source.k_row_stride = keys.stride;
  source.v_row_stride = values.stride;
  source.k_head_stride = keys.width / heads;
  source.v_head_stride = values.width / heads;
  return source;
}

namespace ops {

OpWork Attend::Work() const {
  const auto useful = static_cast<double>(plan.plan->useful);
  OpWork work = {.attention = useful * (call.Dk + call.Dv)};
  for (const kernels::Table& table : call.tables) {
    // Rows that queries are multiplied with too.
    if (table.entry_stride > 1) work.attention += useful * call.Dk;
  }
  return work;
}

void Attend::OnHost(HostBackend& host) const {
  if (plan.plan->items.empty()) return;
  const kernels::WorkspaceBytes bytes = Measure(*plan.plan, call, host.context().isa);
  Carver scratch = host.Scratch();
  std::byte* const workspace = scratch.TakeBytes(bytes.total(host.threads()));
  if (!host.Runs(scratch)) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  RunPlan(*plan.plan, call, kernels::CarveWorkspace(workspace, bytes), host.pool(),
          host.context().isa);
}

}  // namespace ops
}  // namespace longview::models
