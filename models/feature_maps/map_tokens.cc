#include "models/feature_maps/map_tokens.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/span/chunk_map.h"
#include "models/dense/rowwise.h"

namespace longview::models {

namespace {

std::vector<int32_t> PlaceTokens(ImageSize map, int globals, int square) {
  const int32_t count = map.height * map.width;
  std::vector<int32_t> places(count);
  if (square == 0) {
    std::iota(places.begin(), places.end(), globals);
    return places;
  }
  const std::vector<int32_t> order = kernels::ChunkMap(map.height, map.width, square).Order();
  for (int32_t rank = 0; rank < count; ++rank) places[order[rank]] = globals + rank;
  return places;
}

}  // namespace

std::vector<MapTokens> PlaceImages(ShapeCache& shapes, size_t stage,
                                   std::span<const ImageSize> maps, int globals, int square) {
  std::vector<MapTokens> images;
  int32_t row0 = 0;
  for (const ImageSize& map : maps) {
    auto places =
        shapes.Of<std::vector<int32_t>>(ShapeKey(ShapeKind::kTokenPlaces, stage, {&map, 1}),
                                        [&] { return PlaceTokens(map, globals, square); });
    const int32_t rows = globals + map.height * map.width;
    images.push_back({map, row0, rows, std::move(places)});
    row0 += rows;
  }
  return images;
}

BandImages::BandImages(std::span<const MapTokens> given) : row0(given.front().row0) {
  for (const MapTokens& image : given) {
    const auto found = std::find(sizes.begin(), sizes.end(), image.map);
    const auto size = static_cast<int32_t>(found - sizes.begin());
    if (found == sizes.end()) sizes.push_back(image.map);
    images.push_back({image.row0 - given.front().row0, image.map, size});
    maps.push_back(image.map);
    rows += image.rows;
  }
}

TokenFinder::TokenFinder(std::span<const MapTokens> images) : images_(images), first_{0} {
  for (const MapTokens& image : images) first_.push_back(first_.back() + image.count());
}

TokenFinder::Place TokenFinder::Find(int64_t token) const {
  const auto next = std::upper_bound(first_.begin(), first_.end(), token);
  const auto image = static_cast<int>(next - first_.begin()) - 1;
  const auto position = static_cast<int>(token - first_[image]);
  const int width = images_[image].map.width;
  return {image, position / width, position % width};
}

void GatherPixels(const PixelValues& pixels, Taps taps, Compute compute, std::byte* to) {
  const RowKernels& kernels = ChooseRowKernels(compute);
  const int64_t element = ElementBytes(compute);
  const auto [height, width] = pixels.size;
  const int begin = std::clamp(-taps.x0, 0, taps.side);
  const int end = std::clamp(width - taps.x0, begin, taps.side);
  constexpr int kChannels = 3;
  for (int c = 0; c < kChannels; ++c) {
    for (int k = 0; k < taps.side; ++k, to += taps.side * element) {
      const int y = taps.y0 + k;
      const bool inside = y >= 0 && y < height;
      if (!inside || end - begin < taps.side) {
        std::memset(to, 0, static_cast<size_t>(taps.side * element));
      }
      if (!inside) continue;
      const float* row = pixels.values.data() + (int64_t{c} * height + y) * width;
      kernels.narrow(row + taps.x0 + begin, end - begin, to + begin * element);
    }
  }
}

void GatherRows(const float* x, int64_t width, const MapTokens& tokens, Taps taps, Compute compute,
                std::byte* to) {
  const RowKernels& kernels = ChooseRowKernels(compute);
  const int64_t bytes = width * ElementBytes(compute);
  for (int ky = 0; ky < taps.side; ++ky) {
    for (int kx = 0; kx < taps.side; ++kx, to += bytes) {
      const int tap_y = taps.y0 + ky, tap_x = taps.x0 + kx;
      if (tap_y < 0 || tap_y >= tokens.map.height || tap_x < 0 || tap_x >= tokens.map.width) {
        std::memset(to, 0, static_cast<size_t>(bytes));
        continue;
      }
      const int64_t row = tokens.row(int64_t{tap_y} * tokens.map.width + tap_x);
      kernels.narrow(x + row * width, width, to);
    }
  }
}

int32_t* WriteTaps(const MapTokens& tokens, Taps taps, int32_t* to) {
  const auto [height, width] = tokens.map;
  for (int y = taps.y0; y < taps.y0 + taps.side; ++y) {
    for (int x = taps.x0; x < taps.x0 + taps.side; ++x) {
      const bool inside = y >= 0 && y < height && x >= 0 && x < width;
      *to++ = inside ? static_cast<int32_t>(tokens.row(int64_t{y} * width + x)) : -1;
    }
  }
  return to;
}

int32_t* WriteTaps(const MapTokens& tokens, ImageSize places, int side, int stride, int padding,
                   int32_t* to) {
  for (int y = 0; y < places.height; ++y) {
    for (int x = 0; x < places.width; ++x) {
      to = WriteTaps(tokens, {y * stride - padding, x * stride - padding, side}, to);
    }
  }
  return to;
}

}  // namespace longview::models
