#include "models/vil/bias_tables.h"

#include <algorithm>

#include "kernels/cuda/vision/maps_api.h"
#include "models/ops/device_backend.h"
#include "models/ops/host_backend.h"

namespace longview::models {

// Tables of all sizes one behind the other, in the order in which plans name them.
BiasRef StageBiases(Backend& backend, const std::vector<MapBias>& maps, int heads, int blocks) {
  BiasRef staged;
  staged.maps = &maps;
  if (!backend.on_device()) return staged;
  staged.heads = heads;
  for (const MapBias& map : maps) {
    DeviceBias& bias = staged.device.emplace_back();
    bias.first = staged.entries;
    bias.count = static_cast<int64_t>(map.rows.size());
    bias.learned_entries = map.learned;
    bias.entries = backend.List(map.rows);
    staged.entries += bias.count;
    for (int b = 0; map.resized && b < blocks; ++b) {
      bias.learned.push_back(backend.ListWritten<float>(
          heads * map.learned, [&](float* to) { std::ranges::copy(map.of_block(b), to); }));
    }
  }
  return staged;
}

int64_t BiasFloats(const Backend& backend, const std::vector<MapBias>& maps, int heads) {
  if (!backend.on_device()) return 0;
  int64_t entries = 0;
  for (const MapBias& map : maps) entries += static_cast<int64_t>(map.rows.size());
  return entries * heads;
}

namespace ops {

void AddBiases::OnHost(HostBackend& host) const {
  for (const MapBias& map : *biases.maps) {
    kernels::Table& table = tables.emplace_back();
    table.entries = static_cast<int32_t>(map.rows.size());
    table.head_stride = table.entries;
    if (host.Runs()) table.data = map.of_block(block).data();
  }
}

void AddBiases::OnDevice(DeviceBackend& device) const {
  kernels::Table& table = tables.emplace_back();
  table.data = memory;
  table.entries = static_cast<int32_t>(biases.entries);
  table.head_stride = biases.entries;
  if (!device.Runs()) return;
  device.Timed(&RunTimes::attention, [&] {
    for (const DeviceBias& map : biases.device) {
      const float* values =
          map.learned.empty() ? learned.device() : map.learned[static_cast<size_t>(block)];
      const kernels::cuda::BiasTable args = {values,        map.learned_entries, map.entries,
                                             map.count,     biases.heads,        memory + map.first,
                                             biases.entries};
      device.Check(device.api().maps.bias_table(device.stream(), args), "biases of a map");
    }
  });
}

}  // namespace ops
}  // namespace longview::models
