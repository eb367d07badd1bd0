#include "models/vision/map_planes.h"

#include <algorithm>
#include <vector>

#include "models/ops/device_backend.h"
#include "models/ops/host_backend.h"

namespace longview::models {

PlanesRef StagePlanes(Backend& backend, std::span<const WantedMap> maps) {
  PlanesRef staged = {.maps = maps};
  if (!backend.on_device()) return staged;
  std::vector<kernels::cuda::PlaneImage> images;
  for (const WantedMap& map : maps) {
    images.push_back({map.token0, map.out0, map.tokens});
    staged.most = std::max(staged.most, map.tokens);
  }
  staged.images = backend.List(images);
  return staged;
}

namespace ops {

void MapPlanes::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const Stopwatch watch = host.Timed(&RunTimes::rest);
  // A few rows at a time stay in cache while their columns become runs.
  constexpr int64_t kRows = 32;
  for (const WantedMap& map : wanted.maps) {
    const MapTokens& image = tokens.maps->images[static_cast<size_t>(map.image)];
    float* const out = results + map.out0;
    const int64_t runs = (map.tokens + kRows - 1) / kRows;
    ParallelRanges(host.pool(), runs, 1, [&](long begin, long end) {
      for (int64_t first = begin * kRows; first < std::min(end * kRows, map.tokens);
           first += kRows) {
        const int64_t last = std::min(first + kRows, map.tokens);
        for (int64_t c = 0; c < x.width; ++c) {
          for (int64_t i = first; i < last; ++i) {
            out[c * map.tokens + i] = x.floats()[image.row(i) * x.width + c];
          }
        }
      }
    });
  }
}

void MapPlanes::OnDevice(DeviceBackend& device) const {
  if (!device.Runs() || wanted.maps.empty()) return;
  device.Timed(&RunTimes::rest, [&] {
    const kernels::cuda::MapPlanes args = {x.floats(),    tokens.rows,
                                           wanted.images, static_cast<int32_t>(wanted.maps.size()),
                                           wanted.most,   static_cast<int32_t>(x.width),
                                           results};
    device.Check(device.api().maps.planes(device.stream(), args), "feature maps");
  });
}

}  // namespace ops
}  // namespace longview::models
