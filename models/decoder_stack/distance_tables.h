// Dilated windows over cached blocks. Blocks hold neighbouring positions, so a dilated head reads
// the whole span of its window, and a table of distances says which keys count: 0 or kFar, added to
// their scores. A key at kFar gets weight exactly 0 once any other was seen, and every token sees
// itself last. So cached keys need no order of their own per dilation, at the price of reading
// `dilation` times as many.
// Immutable: thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "kernels/span/executor.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

struct StackConfig;

class DistanceTables {
 public:
  // Far below any score; finite, so that differences are numbers.
  static constexpr float kFar = -1e30f;

  DistanceTables() = default;
  DistanceTables(const StackConfig& config, WeightPlacer& place);

  // The first layer with the same window: layers share plans and tables by it.
  int PatternOf(int layer) const { return pattern_[static_cast<size_t>(layer)]; }
  // The Added table [H, span] of a layer's distances, where the model runs; unset where nothing is
  // dilated.
  std::optional<kernels::Table> Of(int layer) const;

 private:
  std::vector<int> pattern_;
  std::vector<Table> tables_;  // By layer; empty: not dilated, or another's.
};

}  // namespace longview::models
