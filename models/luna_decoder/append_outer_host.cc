#include <cmath>

#include "models/luna_decoder/append_outer.h"
#include "models/ops/host_backend.h"

namespace longview::models::ops {
namespace {

kernels::OuterCall OuterCallOf(const AppendOuter& args) {
  kernels::OuterCall call;
  call.q = args.q.floats();
  call.k = args.k.floats();
  call.v = args.v.floats();
  call.g = args.g.floats();
  call.row_stride = args.q.stride;
  call.out = args.out.floats();
  call.out_stride = args.out.stride;
  call.heads = args.heads;
  call.width = static_cast<int>(args.q.width / args.heads);
  call.scale = args.scale();
  call.activation = args.activation;
  call.sequences = args.sequences.host;
  return call;
}

}  // namespace

float AppendOuter::scale() const { return 1.0f / std::sqrt(static_cast<float>(q.width / heads)); }

// Per token and row of P: the weight of its write, both sums and their two reads.
OpWork AppendOuter::Work() const {
  OpWork work;
  for (const kernels::OuterSequence& sequence : sequences.host) {
    work.attention += 5.0 * static_cast<double>(sequence.tokens * sequence.rows * q.width);
  }
  return work;
}

void AppendOuter::OnHost(HostBackend& host) const {
  const kernels::OuterCall call = OuterCallOf(*this);
  const kernels::WorkspaceBytes bytes = MeasureOuter(call);
  Carver scratch = host.Scratch();
  std::byte* const workspace = scratch.TakeBytes(bytes.total(host.threads()));
  if (!host.Runs(scratch)) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  kernels::AppendOuter(call, kernels::CarveWorkspace(workspace, bytes), host.pool(),
                       kernels::BestFloatIsa());
}

// Heads lie one behind the other, as channels do.
void PackOuter::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  kernels::PackOuterRows(rows.floats(), 1, static_cast<int>(rows.width),
                         static_cast<int>(rows.count), packed);
}

}  // namespace longview::models::ops
