#include "models/ops/device_backend.h"
#include "models/vil/attend_by_features.h"

namespace longview::models::ops {

void AttendByFeatures::OnDevice(DeviceBackend& device) const {
  const int64_t d = out.width, images = offsets.count - 1, dim = d / heads;
  Carver scratch = device.Scratch();
  kernels::cuda::PerformerRows rows = {};
  rows.tops = scratch.Take<float>(images * heads);
  rows.sums = scratch.Take<float>(images * heads * features * (dim + 1));
  if (!device.Runs(scratch)) return;
  rows.q = qkv.data;
  rows.k = Column(qkv.data, d, device.compute());
  rows.v = Column(qkv.data, 2 * d, device.compute());
  rows.out = out.data;
  rows.dtype = device.type();
  rows.row_stride = qkv.stride;
  rows.out_row_stride = d;
  rows.heads = heads;
  rows.width = static_cast<int32_t>(dim);
  rows.features = features;
  rows.projection = projection.device();
  rows.offsets = offsets.data;
  rows.images = static_cast<int32_t>(images);
  rows.longest = static_cast<int32_t>(longest);
  device.Timed(&RunTimes::attention, [&] {
    device.Check(device.api().performer.run(device.stream(), rows), "random features");
  });
}

}  // namespace longview::models::ops
