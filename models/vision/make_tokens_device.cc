#include <algorithm>

#include "models/ops/device_backend.h"
#include "models/ops/weight_placer.h"
#include "models/vision/make_tokens.h"

namespace longview::models {
namespace {

void StagePictures(Backend& backend, const TokenMaps& maps, TokensRef& staged) {
  std::vector<kernels::cuda::PixelImage> images;
  int64_t pixels = 0, patches = 0;
  for (size_t i = 0; i < maps.sizes.size(); ++i) {
    const ImageSize size = maps.sizes[i], map = maps.images[i].map;
    images.push_back({pixels, patches, size.height, size.width, map.height, map.width});
    pixels += int64_t{maps.channels} * size.height * size.width;
    patches += maps.images[i].count();
  }
  staged.pictures = backend.List(images);
  staged.pixels = backend.ListWritten<float>(pixels, [&](float* to) {
    for (const PixelValues* picture : maps.pixels) to = std::ranges::copy(picture->values, to).out;
  });
}

void StageTaps(Backend& backend, const TokenMaps& maps, TokensRef& staged) {
  const int64_t taps = staged.tokens * maps.side * maps.side;
  staged.taps = backend.ListWritten<int32_t>(taps, [&](int32_t* to) {
    for (size_t i = 0; i < maps.images.size(); ++i) {
      to = WriteTaps(maps.before[i], maps.images[i].map, maps.side, maps.stride, maps.padding, to);
    }
  });
}

// Rows and columns of all sizes one behind the other.
void StagePositions(Backend& backend, const TokenMaps& maps, TokensRef& staged) {
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
    return backend.ListWritten<float>(count * half, [&](float* to) {
      for (const size_t first : firsts) {
        to = std::ranges::copy(maps.positions(first).*side, to).out;
      }
    });
  };
  staged.down = positions(down0.back(), &MapPositions::down);
  staged.across = positions(across0.back(), &MapPositions::across);
  const auto places = [&](std::span<const int32_t> first, auto&& of_place) {
    return backend.ListWritten<int32_t>(staged.tokens, [&](int32_t* to) {
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

}  // namespace

TokensRef StageTokens(Backend& backend, const TokenMaps& maps) {
  TokensRef staged = {.maps = &maps};
  for (const MapTokens& image : maps.images) {
    staged.tokens += image.count();
    staged.most = std::max(staged.most, image.count());
  }
  staged.columns = int64_t{maps.channels} * maps.side * maps.side;
  if (!backend.on_device()) return staged;
  if (maps.before.empty()) {
    staged.columns = WeightPlacer::PixelColumns(staged.columns);
    StagePictures(backend, maps, staged);
  } else {
    StageTaps(backend, maps, staged);
  }
  staged.rows = backend.ListWritten<int32_t>(staged.tokens, [&](int32_t* to) {
    for (const MapTokens& image : maps.images) {
      for (const int32_t place : *image.places) *to++ = image.row0 + place;
    }
  });
  if (maps.positions) StagePositions(backend, maps, staged);
  return staged;
}

namespace ops {

void MakeTokens::OnDevice(DeviceBackend& device) const {
  const TokenMaps& from = *tokens.maps;
  Carver scratch = device.Scratch();
  const auto take = [&](int64_t columns) {
    return device
        .CarveRows(tokens.tokens, columns, RowType::kCompute, Backend::Tail::kWritten, scratch)
        .data;
  };
  std::byte* const patches = take(tokens.columns);
  std::byte* const made = take(x.width);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::linears, [&] {
    if (from.before.empty()) {
      const auto count = static_cast<int32_t>(from.images.size());
      const auto columns = static_cast<int32_t>(tokens.columns);
      const kernels::cuda::PixelPatches pixels = {
          tokens.pixels, tokens.pictures, count,   tokens.most, from.channels, from.side,
          from.stride,   from.padding,    columns, patches,     device.type()};
      device.Check(device.api().maps.patches(device.stream(), pixels), "patches of pixels");
    } else {
      const int64_t taps = tokens.tokens * from.side * from.side;
      const kernels::cuda::MapTaps rows = {before.floats(), tokens.taps,  patches, taps,
                                           from.channels,   device.type()};
      device.Check(device.api().maps.taps(device.stream(), rows), "patches of a map");
    }
    MultiplyRows(device.device(), weight.device, patches, tokens.tokens, made);
    const kernels::cuda::MapTokens placed = {
        made,
        weight.device.bias,
        norm != nullptr ? norm->device.view() : kernels::cuda::RowNorm{},
        tokens.rows,
        tokens.down,
        tokens.across,
        tokens.down_rows,
        tokens.across_rows,
        x.floats(),
        tokens.tokens,
        static_cast<int32_t>(x.width),
        device.type()};
    device.Check(device.api().maps.tokens(device.stream(), placed), "tokens of a map");
  });
}

}  // namespace ops
}  // namespace longview::models
