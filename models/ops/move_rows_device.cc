#include "models/ops/device_backend.h"
#include "models/ops/move_rows.h"

namespace longview::models::ops {
namespace {

// Without `rows` or `places` they are 0, 1, ...
void Copy(DeviceBackend& device, const void* from, int64_t from_bytes, const int32_t* rows,
          const int32_t* places, int64_t count, const Rows& to) {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::rest, [&] {
    const kernels::cuda::CopyRows args = {from,       to.data,
                                          rows,       places,
                                          count,      static_cast<int32_t>(to.row_bytes()),
                                          from_bytes, to.stride * to.element};
    device.Check(device.api().rows.copy(device.stream(), args), "copying rows");
  });
}

}  // namespace

void Gather::OnDevice(DeviceBackend& device) const {
  Copy(device, from.data, from.stride * from.element, rows.data, nullptr, rows.count, to);
}

void LookUp::OnDevice(DeviceBackend& device) const {
  Copy(device, table.device(), table.width() * int64_t{sizeof(float)}, rows.data, nullptr,
       rows.count, to);
}

void Scatter::OnDevice(DeviceBackend& device) const {
  Copy(device, from.data, from.stride * from.element, nullptr, places.data, places.count, to);
}

void Keep::OnDevice(DeviceBackend& device) const { Gather{x, rows, kept}.OnDevice(device); }

void Clear::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::rest, [&] { device.FillZero(rows); });
}

}  // namespace longview::models::ops
