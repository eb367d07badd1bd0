#include "models/cvt_ls/norm_rows.h"
#include "models/ops/device_backend.h"

namespace longview::models::ops {

void NormRows::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  float* const sums = scratch.Take<float>(rows.count * rows.width);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::rest, [&] {
    const auto bytes = static_cast<uint64_t>(rows.count * rows.width) * sizeof(float);
    device.Check(device.api().fill_zero(device.stream(), sums, bytes), "zeros");
    device.RowsOf(rows.width).Add(sums, rows.data, nullptr, &norm.device, rows.count, rows.data);
  });
}

}  // namespace longview::models::ops
