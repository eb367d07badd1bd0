#include "models/feature_maps/map_slices.h"

#include <algorithm>

#include "kernels/span/chunk_map.h"

namespace longview::models {

int64_t LongShortMap::rows(const LongShortPattern& pattern) const {
  int64_t most = 0;
  for (const LongShortSlice& slice : slices) {
    most = std::max(most, slice.load_end - slice.load_begin);
  }
  return most + pattern.class_tokens;
}

bool CanSlice(const LongShortPattern& pattern) {
  return pattern.class_tokens == 0 || pattern.class_sees_outputs;
}

LongShortMap SliceMap(const LongShortPattern& pattern, int height, int width, int64_t tokens) {
  const int side = std::max(pattern.window, 1);
  const int halo = pattern.window > 0 ? 1 : 0;
  const int rows = kernels::ChunkMap(height, width, side).chunk_rows();
  const int64_t of_row = int64_t{side} * width;
  const auto step = static_cast<int>(std::min<int64_t>(rows, (tokens + of_row - 1) / of_row));
  const auto rank = [&](int row) {
    return std::min<int64_t>(row * of_row, int64_t{height} * width);
  };
  LongShortMap map;
  map.tokens = int64_t{height} * width;
  for (int begin = 0; begin < rows; begin += step) {
    const int end = std::min(begin + step, rows);
    const int load_begin = std::max(begin - halo, 0), load_end = std::min(end + halo, rows);
    LongShortSlice slice{rank(load_begin), rank(load_end), rank(begin), rank(end)};
    const LongShortSliceShape shape{static_cast<int>((slice.load_end - slice.load_begin) / width),
                                    width, begin - load_begin, end - begin};
    const auto found = std::find(map.shapes.begin(), map.shapes.end(), shape);
    slice.shape = static_cast<size_t>(found - map.shapes.begin());
    if (found == map.shapes.end()) map.shapes.push_back(shape);
    map.slices.push_back(slice);
  }
  return map;
}

LongShortPlan PlanSlice(const LongShortPattern& pattern, const LongShortSliceShape& shape,
                        int tile_rows) {
  kernels::WindowImage image;
  image.rows = shape.height;
  image.cols = shape.width;
  image.group0 = shape.group0;
  image.groups = shape.groups;
  LongShortPlan plan = PlanLongShort(pattern, {&image, 1}, tile_rows);
  plan.class_rows = {};
  return plan;
}

}  // namespace longview::models
