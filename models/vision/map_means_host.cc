#include <algorithm>
#include <vector>

#include "models/ops/host_backend.h"
#include "models/vision/map_means.h"

namespace longview::models::ops {

// Row-major over the map whatever order the tokens lie in.
void MapMeans::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const int64_t d = x.width;
  std::vector<float> row(static_cast<size_t>(d));
  std::vector<double> sum(static_cast<size_t>(d));
  for (size_t image = 0; image < means.images.size(); ++image) {
    const MapTokens& tokens = means.images[image];
    std::fill(sum.begin(), sum.end(), 0.0);
    const auto add = [&](int64_t place) {
      const float* from = x.floats() + (tokens.row0 + place) * d;
      if (norm != nullptr) {
        host.floats().norm(from, norm->host.view(), d, row.data());
        from = row.data();
      }
      for (int64_t c = 0; c < d; ++c) sum[c] += from[c];
    };
    const int64_t globals = tokens.rows - tokens.count();
    for (int64_t g = 0; g < globals; ++g) add(g);
    for (const int32_t place : *tokens.places) add(place);
    float* const out = results + static_cast<int64_t>(image) * d;
    for (int64_t c = 0; c < d; ++c) out[c] = static_cast<float>(sum[c] / tokens.rows);
  }
}

}  // namespace longview::models::ops
