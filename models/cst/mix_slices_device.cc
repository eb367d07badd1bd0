#include "models/cst/mix_slices.h"
#include "models/ops/device_backend.h"

namespace longview::models::ops {

// The second linear reads what the first one left in scratch, so `out` may be cleared between them.
void MixSlices::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  float* const between = scratch.Take<float>(slices.count * mixer.hidden() * from.width);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::attention, [&] {
    const kernels::cuda::MixSlices args = {from.data,
                                           slices.visible,
                                           slices.data,
                                           static_cast<int32_t>(slices.count),
                                           static_cast<int32_t>(from.width),
                                           static_cast<int32_t>(mixer.places()),
                                           static_cast<int32_t>(mixer.hidden()),
                                           {mixer.in.device(), mixer.in_bias.device()},
                                           {mixer.out.device(), mixer.out_bias.device()},
                                           between,
                                           out.data,
                                           device.type()};
    device.Check(device.api().encoder.mix_in(device.stream(), args), "mixing places");
    device.FillZero(out);
    device.Check(device.api().encoder.mix_out(device.stream(), args), "mixed places");
  });
}

}  // namespace longview::models::ops
