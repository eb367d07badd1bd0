#include <vector>

#include "kernels/cuda/device_blocks.h"
#include "models/ops/cache_rows.h"
#include "models/ops/device_backend.h"

namespace longview::models {

PlacesRef StagePlaces(Backend& backend, const kernels::ProjectionCache* cache,
                      std::span<const kernels::CachePlace> places) {
  if (!backend.on_device()) return {places, nullptr};
  // A place that is only counted has no address.
  std::vector<kernels::cuda::CacheRowPlace> rows(places.size());
  for (size_t i = 0; cache != nullptr && i < places.size(); ++i) {
    rows[i] = kernels::cuda::PlaceOf(*cache, places[i]);
  }
  return {places, backend.List(rows)};
}

namespace ops {

void Store::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  const kernels::cuda::StoreRows args = {
      keys.data,
      values.data,
      keys.stride,
      places.device,
      kernels::cuda::RowsOf(*strip.cache, strip.strip, strip.layer),
      keys.count,
      device.type()};
  device.Check(device.api().token.store(device.stream(), args), "storing keys and values");
}

void Load::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::rest, [&] {
    const kernels::cuda::LoadRows args = {
        keys.data,
        keys.stride,
        places.device,
        kernels::cuda::RowsOf(*strip.cache, strip.strip, strip.layer),
        static_cast<int64_t>(places.host.size()),
        device.type()};
    device.Check(device.api().token.load(device.stream(), args), "loading keys");
  });
}

}  // namespace ops
}  // namespace longview::models
