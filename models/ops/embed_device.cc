#include "models/ops/device_backend.h"
#include "models/ops/embed.h"
#include "models/ops/residual.h"

namespace longview::models::ops {

void Embed::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::rest, [&] {
    const auto table = [](const Table* given) { return given ? given->device() : nullptr; };
    const kernels::cuda::EmbedSums sums = {
        words->device(), table(positions), table(types), ids.data, places.data,
        kinds.data,      factor,           x.floats(),   x.count,  static_cast<int32_t>(x.width)};
    device.Check(device.api().encoder.embed(device.stream(), sums), "embeddings");
    if (norm != nullptr || input) device.Run(Residual{x, {}, norm, NormPlace::kPost, input});
  });
}

}  // namespace longview::models::ops
