// Taps are gathered by panels of the linear behind them.
#include <algorithm>
#include <array>
#include <cstring>

#include "models/cvt_ls/convolve.h"
#include "models/layers/map_rows.h"
#include "models/ops/host_backend.h"

namespace longview::models::ops {
namespace {

// The token of a row of the batch.
struct Token {
  const MapTokens* map = nullptr;
  int position = -1;  // Row by row over the map; -1: a global one.
};

Token TokenOf(const MapNeighbours& maps, int64_t row) {
  const auto next =
      std::upper_bound(maps.images.begin(), maps.images.end(), row,
                       [](int64_t at, const MapTokens& image) { return at < image.row0; });
  const MapTokens& map = *(next - 1);
  const auto image = static_cast<size_t>(&map - maps.images.data());
  return {&map, (*maps.positions[image])[static_cast<size_t>(row - map.row0)]};
}

// The depthwise half for row `row` of the batch, [C] of T; a global row is copied.
void GatherDepthwise(const Convolve& args, const RowKernels& kernels, int64_t row, std::byte* to) {
  const Token token = TokenOf(*args.maps.maps, row);
  const auto from = [&](int64_t at) { return args.from.Row(at - args.from0); };
  if (token.position < 0) {
    std::memcpy(to, from(row), static_cast<size_t>(args.from.row_bytes()));
    return;
  }
  const auto [height, width] = token.map->map;
  const int y0 = token.position / width - 1, x0 = token.position % width - 1;
  std::array<const void*, kDepthwiseTaps> taps = {};
  for (int t = 0; t < kDepthwiseTaps; ++t) {
    const int y = y0 + t / 3, x = x0 + t % 3;
    if (y < 0 || y >= height || x < 0 || x >= width) continue;
    taps[static_cast<size_t>(t)] = from(token.map->row(int64_t{y} * width + x));
  }
  kernels.weighted_rows(taps.data(), args.layer.taps.values(), kDepthwiseTaps,
                        args.layer.bias.values(), args.from.width, to);
}

}  // namespace

OpWork Convolve::Work() const {
  const Weight& pointwise = layer.pointwise;
  const auto rows = static_cast<double>(out.count);
  return {.linear = rows * static_cast<double>(pointwise.in * pointwise.out),
          .rows = rows * static_cast<double>(kDepthwiseTaps * pointwise.in + pointwise.out)};
}

void Convolve::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  std::byte* const panel = scratch.TakeBytes(static_cast<size_t>(kPanelRows * from.row_bytes()));
  if (!host.Runs(scratch)) return;
  const DenseLayer& pointwise = *layer.pointwise.host;
  const int64_t y_bytes = layer.pointwise.out * ElementBytes(host.compute());
  const bool widens = out.element != ElementBytes(host.compute());
  const float* zeros = host.Zeros(layer.pointwise.out);
  const PanelContext panels{&host.pool(), panel, host.times()};
  const auto use = [&](int64_t i, const std::byte* y) {
    const int64_t row = first + i;
    if (widens) {
      host.kernels().bias_widen(y, pointwise.bias.data(), out.width, out.floats() + i * out.stride);
    } else if (copies_globals && TokenOf(*maps.maps, row).position < 0) {
      host.kernels().bias_copy(from.Row(row - from0), zeros, out.width, out.Row(i));
    } else {
      host.kernels().bias_copy(y, pointwise.bias.data(), out.width, out.Row(i));
    }
  };
  ForEachGatheredPanel(
      pointwise, pointwise.linear.sizes(), out.count, panels,
      [&](int64_t i, std::byte* to) { GatherDepthwise(*this, host.kernels(), first + i, to); },
      [&](int64_t done, int64_t count, int, const std::byte* y) {
        panels.Each(count, [&](long i) { use(done + i, y + i * y_bytes); });
      });
}

}  // namespace longview::models::ops
