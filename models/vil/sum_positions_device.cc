#include "kernels/cuda/vision/maps_api.h"
#include "models/ops/device_backend.h"
#include "models/vil/sum_positions.h"

namespace longview::models::ops {

void SumPositions::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  const int64_t d = from_keys.width, f = keys.width();
  device.Timed(&RunTimes::attention, [&] {
    for (int part = 0; part < 2; ++part) {
      const Rows& from = part == 0 ? from_keys : from_values;
      const kernels::cuda::PositionSums sums = {from.data,
                                                from.stride,
                                                (part == 0 ? keys : values).device(),
                                                begins.data,
                                                static_cast<int32_t>(images.size()),
                                                images[0].rows,
                                                static_cast<int32_t>(f),
                                                static_cast<int32_t>(d),
                                                Column(out.data, part * d, device.compute()),
                                                2 * d,
                                                device.type()};
      device.Check(device.api().maps.position_sums(device.stream(), sums), "keys over positions");
    }
  });
}

}  // namespace longview::models::ops
