#include "models/feature_maps/map_bands.h"

#include <algorithm>

namespace longview::models {
namespace {

LongShortBand WholeBand(const LongShortPattern& pattern, size_t stage, int tile_rows,
                        std::span<const MapTokens> images, ShapeCache& shapes) {
  const BandImages placed(images);
  LongShortBand band;
  band.row0 = placed.row0;
  band.rows = placed.rows;
  band.maps = placed.sizes;
  band.whole = shapes.Of<LongShortPlan>(ShapeKey(ShapeKind::kBandPlan, stage, placed.maps), [&] {
    std::vector<kernels::WindowImage> windows;
    for (const BandImages::Image& image : placed.images) {
      windows.push_back({image.row0, image.map.height, image.map.width, 0, 0, image.size});
    }
    return PlanLongShort(pattern, windows, tile_rows);
  });
  return band;
}

LongShortBand LargeBand(const LongShortPattern& pattern, int64_t slice_tokens, size_t stage,
                        int tile_rows, const MapTokens& image, ShapeCache& shapes) {
  LongShortBand band;
  band.row0 = image.row0;
  band.rows = image.rows;
  band.map = SliceMap(pattern, image.map.height, image.map.width, slice_tokens);
  for (const LongShortSliceShape& shape : band.map.shapes) {
    const ImageSize size = {shape.height, shape.width};
    band.maps.push_back(size);
    band.shapes.push_back(shapes.Of<LongShortPlan>(
        ShapeKey(ShapeKind::kSlicePlan, stage, {&size, 1}, {shape.group0, shape.groups}),
        [&] { return PlanSlice(pattern, shape, tile_rows); }));
  }
  return band;
}

}  // namespace

std::vector<LongShortBand> PlanLongShortBands(const LongShortPattern& pattern,
                                              const LongShortCuts& cuts, size_t stage,
                                              int64_t ratio, int tile_rows,
                                              std::span<const MapTokens> images,
                                              ShapeCache& shapes) {
  const auto large = [&](const MapTokens& image) {
    return !cuts.never && CanSlice(pattern) && image.count() > cuts.slice_tokens &&
           image.count() * ratio * ratio > cuts.large_tokens;
  };
  if (std::none_of(images.begin(), images.end(), large)) {
    return {WholeBand(pattern, stage, tile_rows, images, shapes)};
  }
  std::vector<LongShortBand> bands;
  for (const MapTokens& image : images) {
    bands.push_back(large(image)
                        ? LargeBand(pattern, cuts.slice_tokens, stage, tile_rows, image, shapes)
                        : WholeBand(pattern, stage, tile_rows, {&image, 1}, shapes));
  }
  return bands;
}

}  // namespace longview::models
