#include <vector>

#include "models/luna_decoder/append_outer.h"
#include "models/ops/device_backend.h"

namespace longview::models {

OuterRef StageOuter(Backend& backend, std::span<const kernels::OuterSequence> sequences) {
  if (!backend.on_device()) return {sequences, nullptr};
  std::vector<kernels::cuda::DeviceOuterSequence> staged;
  for (const kernels::OuterSequence& from : sequences) {
    staged.push_back({from.row0, from.tokens, from.before, from.rows, from.packed, from.state});
  }
  return {sequences, backend.List(staged)};
}

namespace ops {

void AppendOuter::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::attention, [&] {
    const kernels::cuda::AppendOuterRows rows = {q.floats(),
                                                 k.floats(),
                                                 v.floats(),
                                                 g.floats(),
                                                 q.stride,
                                                 out.floats(),
                                                 out.stride,
                                                 heads,
                                                 static_cast<int32_t>(q.width / heads),
                                                 scale(),
                                                 activation,
                                                 sequences.device,
                                                 static_cast<int32_t>(sequences.host.size())};
    device.Check(device.api().outer.append(device.stream(), rows), "running sums");
  });
}

void PackOuter::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::rest, [&] {
    const kernels::cuda::PackedOuterRows args = {
        rows.floats(), packed, static_cast<int32_t>(rows.count), static_cast<int32_t>(rows.width)};
    device.Check(device.api().outer.pack(device.stream(), args), "packing rows");
  });
}

}  // namespace ops
}  // namespace longview::models
