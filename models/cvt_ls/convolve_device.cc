#include <algorithm>

#include "kernels/cuda/vision/maps_api.h"
#include "models/cvt_ls/convolve.h"
#include "models/ops/device_backend.h"

namespace longview::models {

NeighboursRef StageNeighbours(Backend& backend, const MapNeighbours& maps) {
  NeighboursRef staged = {.maps = &maps};
  if (!backend.on_device()) return staged;
  int64_t rows = 0;
  std::vector<int32_t> globals;
  for (size_t i = 0; i < maps.images.size(); ++i) {
    const std::vector<int32_t>& positions = *maps.positions[i];
    for (size_t row = 0; row < positions.size(); ++row) {
      if (positions[row] < 0) globals.push_back(maps.images[i].row0 + static_cast<int32_t>(row));
    }
    rows += maps.images[i].rows;
  }
  staged.globals = backend.List(globals);
  staged.global_count = static_cast<int64_t>(globals.size());
  staged.taps = backend.ListWritten<int32_t>(rows * kDepthwiseTaps, [&](int32_t* to) {
    for (size_t i = 0; i < maps.images.size(); ++i) {
      const MapTokens& image = maps.images[i];
      int32_t row = image.row0;
      for (const int32_t position : *maps.positions[i]) {
        const int y = position / image.map.width, x = position % image.map.width;
        if (position >= 0) {
          to = WriteTaps(image, {y - 1, x - 1, 3}, to);
        } else {
          to = std::fill_n(to, kDepthwiseTaps, row);
          to[-kDepthwiseTaps] = kernels::cuda::DepthwiseRows::kAsItIs;
        }
        ++row;
      }
    }
  });
  return staged;
}

namespace ops {

void Convolve::OnDevice(DeviceBackend& device) const {
  const Weight& pointwise = layer.pointwise;
  const bool widens = out.element != ElementBytes(device.compute());
  Carver scratch = device.Scratch();
  const auto take = [&](int64_t rows, int64_t columns) {
    return device.CarveRows(rows, columns, RowType::kCompute, Backend::Tail::kWritten, scratch)
        .data;
  };
  std::byte* const gathered = take(out.count, pointwise.in);
  std::byte* const made = take(widens ? out.count : 0, pointwise.out);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::linears, [&] {
    const kernels::cuda::DepthwiseRows rows = {from.data,
                                               maps.taps,
                                               layer.taps.device(),
                                               layer.bias.device(),
                                               gathered,
                                               out.count,
                                               static_cast<int32_t>(pointwise.in),
                                               device.type()};
    device.Check(device.api().maps.depthwise(device.stream(), rows), "a depthwise convolution");
    // A product writes the compute type: fp32 results are widened from `made`.
    if (widens) {
      MultiplyRows(device.device(), pointwise.device, gathered, out.count, made);
      return device.Widen(pointwise, made, out);
    }
    ApplyLinear(device.device(), pointwise.device, gathered, out.count, out.data);
    if (!copies_globals) return;
    const int64_t bytes = out.row_bytes();
    const kernels::cuda::CopyRows globals = {from.data,
                                             out.data,
                                             maps.globals,
                                             maps.globals,
                                             maps.global_count,
                                             static_cast<int32_t>(bytes),
                                             bytes,
                                             bytes};
    device.Check(device.api().rows.copy(device.stream(), globals), "copying rows");
  });
}

}  // namespace ops
}  // namespace longview::models
