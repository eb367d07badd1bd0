#include "kernels/pool/performer.h"
#include "models/layers/span_rows.h"
#include "models/ops/host_backend.h"
#include "models/vil/attend_by_features.h"

namespace longview::models::ops {

void AttendByFeatures::OnHost(HostBackend& host) const {
  const int64_t d = out.width;
  kernels::PerformerCall call;
  call.q = qkv.data;
  call.k = Column(qkv.data, d, host.compute());
  call.v = Column(qkv.data, 2 * d, host.compute());
  call.out = out.data;
  call.dtype = SpanType(host.compute());
  call.row_stride = qkv.stride;
  call.out_row_stride = d;
  call.heads = heads;
  call.width = static_cast<int>(d / heads);
  call.features = features;
  call.offsets = {offsets.data, static_cast<size_t>(offsets.count)};
  const kernels::WorkspaceBytes bytes = MeasurePerformer(call);
  Carver scratch = host.Scratch();
  std::byte* const workspace = scratch.TakeBytes(bytes.total(host.threads()));
  if (!host.Runs(scratch)) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  call.projection = projection.values();
  RunPerformer(call, kernels::CarveWorkspace(workspace, bytes), host.pool());
}

}  // namespace longview::models::ops
