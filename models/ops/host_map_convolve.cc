// Separable convolutions over the rows of feature maps on the host: taps are gathered by panels of
// the linear behind them.
#include <array>
#include <cstring>

#include "models/layers/map_rows.h"
#include "models/ops/host_map_ops.h"

namespace longview::models {
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
void GatherDepthwise(const ConvolveArgs& args, const RowKernels& kernels, int64_t row,
                     std::byte* to) {
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
  kernels.weighted_rows(taps.data(), args.layer->taps.values(), kDepthwiseTaps,
                        args.layer->bias.values(), args.from.width, to);
}

}  // namespace

void HostMapOps::Convolve(const ConvolveArgs& args) {
  const Weight& pointwise = args.layer->pointwise;
  const Rows& out = args.out;
  Carver scratch = BeginScratch();
  std::byte* const panel =
      scratch.TakeBytes(static_cast<size_t>(kPanelRows * args.from.row_bytes()));
  if (!Runs(scratch)) {
    const auto rows = static_cast<double>(out.count);
    counted().linear += rows * static_cast<double>(pointwise.in * pointwise.out);
    counted().rows += rows * static_cast<double>(kDepthwiseTaps * pointwise.in + pointwise.out);
    return;
  }
  const DenseLayer& layer = *pointwise.host;
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const int64_t y_bytes = pointwise.out * ElementBytes(context_.compute);
  const bool widens = out.element != ElementBytes(context_.compute);
  const std::vector<float> zeros(static_cast<size_t>(pointwise.out));
  const PanelContext panels{context_.pool, panel, times_};
  const auto use = [&](int64_t i, const std::byte* y) {
    const int64_t row = args.first + i;
    if (widens) {
      kernels.bias_widen(y, layer.bias.data(), out.width, out.floats() + i * out.stride);
    } else if (args.copies_globals && TokenOf(*args.maps.maps, row).position < 0) {
      kernels.bias_copy(args.from.Row(row - args.from0), zeros.data(), out.width, out.Row(i));
    } else {
      kernels.bias_copy(y, layer.bias.data(), out.width, out.Row(i));
    }
  };
  ForEachGatheredPanel(
      layer, layer.linear.sizes(), out.count, panels,
      [&](int64_t i, std::byte* to) { GatherDepthwise(args, kernels, args.first + i, to); },
      [&](int64_t done, int64_t count, int, const std::byte* y) {
        panels.Each(count, [&](long i) { use(done + i, y + i * y_bytes); });
      });
}

void HostMapOps::NormRows(const Rows& rows, const NormWeight& norm) {
  if (counts()) {
    counted().rows += static_cast<double>(rows.count) * static_cast<double>(rows.width);
    return;
  }
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const std::vector<float> zeros(static_cast<size_t>(rows.width));
  PanelContext{context_.pool, nullptr, times_}.Each(rows.count, [&](long i) {
    kernels.bias_norm(rows.Row(i), zeros.data(), norm.host.view(), rows.width, rows.Row(i));
  });
}

}  // namespace longview::models
