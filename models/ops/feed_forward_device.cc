#include "models/device/device_tail.h"
#include "models/ops/device_backend.h"
#include "models/ops/feed_forward.h"

namespace longview::models::ops {

void FeedForward::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  const auto take = [&](const Weight* weight) -> std::byte* {
    return weight ? device.TakePanels(*weight, rows.x.count, scratch) : nullptr;
  };
  DeviceTailRows part = {rows.x.floats(), rows.input.data, rows.z.data};
  part.wide = take(weights.expand);
  part.gates = take(weights.gate);
  part.added = take(weights.contract);
  part.rows = rows.x.count;
  part.few = rows.z.few;
  if (!device.Runs(scratch)) return;
  const auto linear = [](const Weight* weight) { return weight ? &weight->device : nullptr; };
  const auto norm = [](const NormWeight* given) { return given ? &given->device : nullptr; };
  DeviceTail tail;
  tail.out = linear(weights.out);
  tail.after_attention = norm(weights.after_attention);
  tail.expand = linear(weights.expand);
  tail.gate = linear(weights.gate);
  tail.contract = linear(weights.contract);
  tail.after_layer = norm(weights.after_layer);
  tail.last = norm(weights.last);
  tail.activation = weights.activation;
  tail.norms = weights.norms;
  device.Timed(&RunTimes::linears, [&] { RunDeviceTail(device.device(), tail, part); });
}

}  // namespace longview::models::ops
