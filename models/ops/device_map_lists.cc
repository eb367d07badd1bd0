// The lists that operations on feature maps read on a device.
#include <algorithm>
#include <utility>

#include "kernels/cuda/pool/pool_pieces.h"
#include "models/ops/device_map_ops.h"

namespace longview::models {
namespace {

// `count` values of T that `write(T*)` writes.
template <typename T, typename Write>
const T* AddWritten(StagedLists& lists, int64_t count, Write&& write) {
  const auto bytes = static_cast<size_t>(count) * sizeof(T);
  return reinterpret_cast<const T*>(
      lists.AddBytes(bytes, [&](std::byte* to) { write(reinterpret_cast<T*>(to)); }));
}

// A square of `side` places, from (y0, x0) on.
struct Square {
  int y0 = 0;
  int x0 = 0;
  int side = 1;
};

// Writes the rows of `from` that the square covers, row by row; -1 outside of the map.
int32_t* WriteSquare(const MapTokens& from, Square square, int32_t* to) {
  const auto [height, width] = from.map;
  for (int y = square.y0; y < square.y0 + square.side; ++y) {
    for (int x = square.x0; x < square.x0 + square.side; ++x) {
      const bool inside = y >= 0 && y < height && x >= 0 && x < width;
      *to++ = inside ? static_cast<int32_t>(from.row(int64_t{y} * width + x)) : -1;
    }
  }
  return to;
}

// The same for every place of a map that a convolution of such squares leaves.
int32_t* WriteTaps(const MapTokens& from, ImageSize places, int side, int stride, int padding,
                   int32_t* to) {
  for (int y = 0; y < places.height; ++y) {
    for (int x = 0; x < places.width; ++x) {
      to = WriteSquare(from, {y * stride - padding, x * stride - padding, side}, to);
    }
  }
  return to;
}

}  // namespace

TokensRef DeviceMapOps::Stage(const TokenMaps& maps) {
  StagedTokens& staged = tokens_.emplace_back();
  for (const MapTokens& image : maps.images) {
    staged.tokens += image.count();
    staged.most = std::max(staged.most, image.count());
  }
  if (maps.before.empty()) {
    StagePictures(maps, staged);
  } else {
    StageTaps(maps, staged);
  }
  staged.rows = AddWritten<int32_t>(*lists_, staged.tokens, [&](int32_t* to) {
    for (const MapTokens& image : maps.images) {
      for (const int32_t place : *image.places) *to++ = image.row0 + place;
    }
  });
  if (maps.positions) StagePositions(maps, staged);
  return {&maps, static_cast<int>(tokens_.size()) - 1};
}

void DeviceMapOps::StagePictures(const TokenMaps& maps, StagedTokens& staged) {
  std::vector<kernels::cuda::PixelImage> images;
  int64_t pixels = 0, patches = 0;
  for (size_t i = 0; i < maps.sizes.size(); ++i) {
    const ImageSize size = maps.sizes[i], map = maps.images[i].map;
    images.push_back({pixels, patches, size.height, size.width, map.height, map.width});
    pixels += int64_t{maps.channels} * size.height * size.width;
    patches += maps.images[i].count();
  }
  staged.pictures = lists_->Add(images);
  staged.pixels = AddWritten<float>(*lists_, pixels, [&](float* to) {
    for (const PixelValues* picture : maps.pixels) to = std::ranges::copy(picture->values, to).out;
  });
}

void DeviceMapOps::StageTaps(const TokenMaps& maps, StagedTokens& staged) {
  const int64_t taps = staged.tokens * maps.side * maps.side;
  staged.taps = AddWritten<int32_t>(*lists_, taps, [&](int32_t* to) {
    for (size_t i = 0; i < maps.images.size(); ++i) {
      to = WriteTaps(maps.before[i], maps.images[i].map, maps.side, maps.stride, maps.padding, to);
    }
  });
}

// Rows and columns of all sizes one behind the other.
void DeviceMapOps::StagePositions(const TokenMaps& maps, StagedTokens& staged) {
  std::vector<size_t> firsts;  // The first image of every size.
  std::vector<size_t> size_of(maps.images.size());
  for (size_t i = 0; i < maps.images.size(); ++i) {
    const auto found = std::ranges::find_if(
        firsts, [&](size_t first) { return maps.images[first].map == maps.images[i].map; });
    size_of[i] = static_cast<size_t>(found - firsts.begin());
    if (found == firsts.end()) firsts.push_back(i);
  }
  std::vector<int32_t> down0 = {0}, across0 = {0};
  for (const size_t first : firsts) {
    down0.push_back(down0.back() + maps.images[first].map.height);
    across0.push_back(across0.back() + maps.images[first].map.width);
  }
  const int64_t half = maps.width / 2;
  const auto positions = [&](int64_t count, std::span<const float> MapPositions::*side) {
    return AddWritten<float>(*lists_, count * half, [&](float* to) {
      for (const size_t first : firsts) {
        to = std::ranges::copy(maps.positions(first).*side, to).out;
      }
    });
  };
  staged.down = positions(down0.back(), &MapPositions::down);
  staged.across = positions(across0.back(), &MapPositions::across);
  const auto places = [&](std::span<const int32_t> first, auto&& of_place) {
    return AddWritten<int32_t>(*lists_, staged.tokens, [&](int32_t* to) {
      for (size_t i = 0; i < maps.images.size(); ++i) {
        const ImageSize map = maps.images[i].map;
        for (int p = 0; p < map.height * map.width; ++p) {
          *to++ = first[size_of[i]] + of_place(p, map.width);
        }
      }
    });
  };
  staged.down_rows = places(down0, [](int place, int width) { return place / width; });
  staged.across_rows = places(across0, [](int place, int width) { return place % width; });
}

PlanesRef DeviceMapOps::Stage(std::span<const WantedMap> maps) {
  StagedPlanes& staged = planes_.emplace_back();
  std::vector<kernels::cuda::PlaneImage> images;
  for (const WantedMap& map : maps) {
    images.push_back({map.token0, map.out0, map.tokens});
    staged.most = std::max(staged.most, map.tokens);
  }
  staged.images = lists_->Add(images);
  staged.count = static_cast<int32_t>(images.size());
  return {maps, static_cast<int>(planes_.size()) - 1};
}

MeansRef DeviceMapOps::StageMeans(std::span<const MapTokens> images) {
  std::vector<kernels::cuda::PoolSegment> segments;
  for (const MapTokens& image : images) segments.push_back({image.row0, image.row0 + image.rows});
  const kernels::cuda::PoolPiecePlan cut = kernels::cuda::CutPieces(segments);
  means_.push_back({lists_->Add(cut.pieces), lists_->Add(cut.piece0),
                    static_cast<int32_t>(cut.pieces.size()), segments.back().end});
  return {images, static_cast<int>(means_.size()) - 1};
}

// Tables of all sizes one behind the other, in the order in which plans name them.
BiasRef DeviceMapOps::Stage(const std::vector<MapBias>& maps, int heads, int blocks) {
  StagedBiases& staged = biases_.emplace_back();
  staged.heads = heads;
  for (const MapBias& map : maps) {
    StagedBias& bias = staged.maps.emplace_back();
    bias.first = staged.entries;
    bias.count = static_cast<int64_t>(map.rows.size());
    bias.learned_entries = map.learned;
    bias.entries = lists_->Add(map.rows);
    staged.entries += bias.count;
    for (int b = 0; map.resized && b < blocks; ++b) {
      bias.learned.push_back(AddWritten<float>(*lists_, heads * map.learned, [&](float* to) {
        std::ranges::copy(map.of_block(b), to);
      }));
    }
  }
  return {&maps, static_cast<int>(biases_.size()) - 1};
}

ReductionRef DeviceMapOps::Stage(const MapReduction& maps) {
  StagedReduction& staged = reductions_.emplace_back();
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
  staged.begins = lists_->Add(begins);
  staged.keys = lists_->Add(keys);
  staged.globals = lists_->Add(globals);
  staged.global_keys = lists_->Add(global_keys);
  staged.from = AddWritten<int32_t>(*lists_, maps.places * side * side, [&](int32_t* to) {
    for (const MapTokens& image : maps.images) {
      const ImageSize places = {image.map.height / side, image.map.width / side};
      to = WriteTaps(image, places, side, side, 0, to);
    }
  });
  return {&maps, static_cast<int>(reductions_.size()) - 1};
}

NeighboursRef DeviceMapOps::Stage(const MapNeighbours& maps) {
  StagedNeighbours& staged = neighbours_.emplace_back();
  int64_t rows = 0;
  std::vector<int32_t> globals;
  for (size_t i = 0; i < maps.images.size(); ++i) {
    const std::vector<int32_t>& positions = *maps.positions[i];
    for (size_t row = 0; row < positions.size(); ++row) {
      if (positions[row] < 0) globals.push_back(maps.images[i].row0 + static_cast<int32_t>(row));
    }
    rows += maps.images[i].rows;
  }
  staged.globals = lists_->Add(globals);
  staged.global_count = static_cast<int64_t>(globals.size());
  staged.taps = AddWritten<int32_t>(*lists_, rows * kDepthwiseTaps, [&](int32_t* to) {
    for (size_t i = 0; i < maps.images.size(); ++i) {
      const MapTokens& image = maps.images[i];
      int32_t row = image.row0;
      for (const int32_t position : *maps.positions[i]) {
        const int y = position / image.map.width, x = position % image.map.width;
        if (position >= 0) {
          to = WriteSquare(image, {y - 1, x - 1, 3}, to);
        } else {
          to = std::fill_n(to, kDepthwiseTaps, row);
          to[-kDepthwiseTaps] = kernels::cuda::DepthwiseRows::kAsItIs;
        }
        ++row;
      }
    }
  });
  return {&maps, static_cast<int>(neighbours_.size()) - 1};
}

}  // namespace longview::models
