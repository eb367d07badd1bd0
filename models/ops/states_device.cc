#include "models/ops/device_backend.h"
#include "models/ops/states.h"

namespace longview::models::ops {
namespace {

void CopyStates(DeviceBackend& device, const Rows& rows, StatesRef states, int64_t shift,
                bool stores) {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::rest, [&] {
    const bool floats = rows.element == sizeof(float);
    const kernels::cuda::StateRows args = {
        states.data,    shift,
        rows.data,      rows.stride,
        states.count,   static_cast<int32_t>(rows.width),
        stores ? 1 : 0, floats ? kernels::DType::kFloat32 : device.type()};
    device.Check(device.api().token.states(device.stream(), args), "states of sequences");
  });
}

}  // namespace

void LoadStates::OnDevice(DeviceBackend& device) const {
  CopyStates(device, rows, states, shift, /*stores=*/false);
}

void StoreStates::OnDevice(DeviceBackend& device) const {
  CopyStates(device, rows, states, shift, /*stores=*/true);
}

}  // namespace longview::models::ops
