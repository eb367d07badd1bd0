#include "models/forward/forward.h"

#include "models/ops/device_backend.h"
#include "models/ops/host_backend.h"

namespace longview::models {

void RunThrough(Forward& forward, Backend& count) {
  forward.Stage(count);
  forward.Take(count);
  forward.Embed(count);
  for (int layer = 0; layer < forward.layers(); ++layer) forward.Layer(count, layer);
}

ForwardCount CountOnHost(Forward& forward, const ComputeContext& context) {
  HostBackend count(context);
  RunThrough(forward, count);
  return {count.need(), count.work()};
}

ForwardCount CountOnDevice(Forward& forward, Compute compute) {
  DeviceBackend count(compute);
  RunThrough(forward, count);
  return {count.need(), count.work()};
}

size_t ResultBytes(const Forward& forward) {
  size_t bytes = 0;
  for (const Rows& rows : forward.Results()) {
    bytes += static_cast<size_t>(rows.count * rows.width) * sizeof(float);
  }
  return bytes;
}

}  // namespace longview::models
