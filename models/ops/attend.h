// Attention over a plan (kernels/span): who sees whom was planned by the family.
#pragma once

#include "models/ops/backend.h"

namespace longview::models {

// Attention with heads side by side in rows of q and out, scores divided by the root of the head's
// width. Sources are to be filled in.
kernels::Call HeadsCall(Compute compute, const Rows& q, const Rows& out, int heads);
// Keys and values with heads side by side in T rows.
kernels::Source HeadsSource(Compute compute, const Rows& keys, const Rows& values, int heads);

namespace ops {

// Pointers of the call are the backend's memory.
struct Attend {
  PlanRef plan;
  const kernels::Call& call;

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
