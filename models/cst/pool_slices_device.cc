#include "models/cst/pool_slices.h"
#include "models/ops/device_backend.h"

namespace longview::models::ops {

void PoolSlices::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::attention, [&] {
    const kernels::cuda::PoolSlices args = {from.data,
                                            slices.visible,
                                            slices.data,
                                            static_cast<int32_t>(slices.count),
                                            static_cast<int32_t>(from.width),
                                            pooling == kernels::SlicePooling::kMax ? 1 : 0,
                                            out.data,
                                            device.type()};
    device.Check(device.api().encoder.pool_slices(device.stream(), args), "pooling slices");
  });
}

void PoolParts::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::attention, [&] {
    const kernels::cuda::PoolParts args = {from.data,
                                           parts.data,
                                           static_cast<int32_t>(parts.count),
                                           static_cast<int32_t>(from.width),
                                           pooling == kernels::SlicePooling::kMax ? 1 : 0,
                                           sums.floats(),
                                           device.type()};
    device.Check(device.api().encoder.pool_parts(device.stream(), args), "pooling slices");
  });
}

}  // namespace longview::models::ops
