#include <algorithm>

#include "models/layers/map_rows.h"
#include "models/ops/host_backend.h"
#include "models/vision/make_tokens.h"

namespace longview::models::ops {

void MakeTokens::OnHost(HostBackend& host) const {
  const TokenMaps& maps = *tokens.maps;
  const int64_t d = x.width, half = d / 2, element = ElementBytes(host.compute());
  Carver scratch = host.Scratch();
  std::byte* const panel =
      scratch.TakeBytes(static_cast<size_t>(kPanelRows * tokens.columns * element));
  if (!host.Runs(scratch)) return;
  const DenseLayer& layer = *weight.host;
  std::vector<MapPositions> positions;
  for (size_t i = 0; maps.positions && i < maps.images.size(); ++i) {
    positions.push_back(maps.positions(i));
  }
  const TokenFinder finder(maps.images);
  const PanelContext panels{&host.pool(), panel, host.times()};
  const auto gather = [&](int64_t token, std::byte* taps_of_token) {
    const TokenFinder::Place at = finder.Find(token);
    const Taps taps{at.y * maps.stride - maps.padding, at.x * maps.stride - maps.padding,
                    maps.side};
    if (maps.before.empty()) {
      GatherPixels(*maps.pixels[at.image], taps, host.compute(), taps_of_token);
    } else {
      GatherRows(before.floats(), before.width, maps.before[at.image], taps, host.compute(),
                 taps_of_token);
    }
  };
  const auto place = [&](int64_t token, const std::byte* y) {
    const TokenFinder::Place at = finder.Find(token);
    const MapTokens& image = maps.images[at.image];
    float* to = x.floats() + image.row(int64_t{at.y} * image.map.width + at.x) * d;
    if (norm != nullptr) {
      // The kernel adds to what is there, and a token has no residual.
      std::fill_n(to, d, 0.0f);
      host.kernels().residual_norm(to, y, layer.bias.data(), norm->host.view(), d, nullptr);
    } else {
      host.kernels().bias_widen(y, layer.bias.data(), d, to);
    }
    if (positions.empty()) return;
    const float* down = positions[at.image].down.data() + at.y * half;
    const float* across = positions[at.image].across.data() + at.x * half;
    for (int64_t i = 0; i < half; ++i) {
      to[i] += down[i];
      to[half + i] += across[i];
    }
  };
  ForEachGatheredPanel(layer, layer.linear.sizes(), finder.tokens(), panels, gather,
                       [&](int64_t token, int64_t count, int, const std::byte* y) {
                         panels.Each(count, [&](long i) { place(token + i, y + i * d * element); });
                       });
}

}  // namespace longview::models::ops
