#include "models/ops/device_backend.h"
#include "models/ops/residual.h"

namespace longview::models::ops {

void Residual::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::rest, [&] {
    const DeviceRows rows = device.RowsOf(x.width);
    if (place == NormPlace::kPre && norm != nullptr) {
      return rows.AddPrenorm(x.floats(), y.data, nullptr, norm->device, x.count, out.data);
    }
    std::byte* copy = out.data == x.data ? nullptr : out.data;
    rows.Add(x.floats(), y.data, nullptr, norm ? &norm->device : nullptr, x.count, copy);
  });
}

void Narrow::OnDevice(DeviceBackend& device) const {
  Residual{x, {}, nullptr, NormPlace::kPost, out}.OnDevice(device);
}

void AddRows::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::rest, [&] {
    const kernels::cuda::AddedRows sums = {in.data,      added.data, index.data,
                                           out.data,     in.count,   static_cast<int32_t>(in.width),
                                           device.type()};
    device.Check(device.api().encoder.add(device.stream(), sums), "adding rows");
  });
}

}  // namespace longview::models::ops
