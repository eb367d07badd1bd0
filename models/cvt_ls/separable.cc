#include "models/cvt_ls/separable.h"

#include <array>
#include <cstring>

namespace longview::models {

void GatherDepthwise(const Separable& separable, const CvtStagePlan& plan, ConvolvedRows input,
                     int64_t row, Compute compute, std::byte* to) {
  const auto width = static_cast<int64_t>(separable.bias.size());
  const TokenFinder::Place place = plan.PlaceOf(row);
  if (place.y < 0) {
    std::memcpy(to, input.at(row), static_cast<size_t>(width * ElementBytes(compute)));
    return;
  }
  const MapTokens& tokens = plan.images[place.image];
  std::array<const void*, kDepthwiseTaps> taps = {};
  for (int t = 0; t < kDepthwiseTaps; ++t) {
    const int y = place.y + t / 3 - 1, x = place.x + t % 3 - 1;
    if (y < 0 || y >= tokens.map.height || x < 0 || x >= tokens.map.width) continue;
    taps[t] = input.at(tokens.row(int64_t{y} * tokens.map.width + x));
  }
  ChooseRowKernels(compute).weighted_rows(taps.data(), separable.taps.data(), kDepthwiseTaps,
                                          separable.bias.data(), width, to);
}

}  // namespace longview::models
