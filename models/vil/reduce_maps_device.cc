#include "models/vil/reduce_maps.h"

#include <vector>

#include "kernels/cuda/vision/maps_api.h"
#include "models/ops/device_backend.h"

namespace longview::models {

ReductionRef StageReduction(Backend& backend, const MapReduction& maps) {
  ReductionRef staged = {.maps = &maps};
  if (!backend.on_device()) return staged;
  const int side = maps.side;
  std::vector<int32_t> begins = {0}, keys, globals, global_keys;
  int32_t key0 = 0;
  for (const MapTokens& image : maps.images) {
    for (int g = 0; g < maps.globals; ++g) {
      globals.push_back(image.row0 + g);
      global_keys.push_back(key0 + g);
    }
    const int32_t places = (image.map.height / side) * (image.map.width / side);
    keys.push_back(key0 + maps.globals);
    begins.push_back(begins.back() + places);
    key0 += maps.globals + places;
  }
  staged.begins = backend.List(begins);
  staged.keys = backend.List(keys);
  staged.globals = backend.List(globals);
  staged.global_keys = backend.List(global_keys);
  staged.from = backend.ListWritten<int32_t>(maps.places * side * side, [&](int32_t* to) {
    for (const MapTokens& image : maps.images) {
      const ImageSize places = {image.map.height / side, image.map.width / side};
      to = WriteTaps(image, places, side, side, 0, to);
    }
  });
  return staged;
}

namespace ops {

void ReduceMaps::OnDevice(DeviceBackend& device) const {
  const MapReduction& reduction = *maps.maps;
  const int64_t d = from.width, taps = int64_t{reduction.side} * reduction.side;
  const auto images = static_cast<int32_t>(reduction.images.size());
  Carver scratch = device.Scratch();
  const auto take = [&](int64_t rows, int64_t columns) {
    return device.CarveRows(rows, columns, RowType::kCompute, Backend::Tail::kWritten, scratch)
        .data;
  };
  std::byte* const patches = take(reduction.places, taps * d);
  std::byte* const reduced = take(reduction.places, d);
  std::byte* const inputs = take(out.count, d);
  if (!device.Runs(scratch)) return;
  const auto copy = [&](std::byte* to, const int32_t* rows, const int32_t* places, int64_t count) {
    const int64_t bytes = from.row_bytes();
    const kernels::cuda::CopyRows args = {
        from.data, to, rows, places, count, static_cast<int32_t>(bytes), bytes, bytes};
    device.Check(device.api().rows.copy(device.stream(), args), "copying rows");
  };
  device.Timed(&RunTimes::linears, [&] {
    copy(patches, maps.from, nullptr, reduction.places * taps);
    MultiplyRows(device.device(), reduce.device, patches, reduction.places, reduced);
    const kernels::cuda::ColumnNorms norms = {
        reduced,          maps.begins, maps.keys,    images, static_cast<int32_t>(d),
        kInstanceNormEps, inputs,      device.type()};
    device.Check(device.api().maps.column_norms(device.stream(), norms), "an instance norm");
    copy(inputs, maps.globals, maps.global_keys, int64_t{images} * reduction.globals);
    ApplyLinear(device.device(), key_value.device, inputs, out.count, out.data);
  });
}

}  // namespace ops
}  // namespace longview::models
