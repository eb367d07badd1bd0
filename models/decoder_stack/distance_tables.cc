#include "models/decoder_stack/distance_tables.h"

#include <algorithm>
#include <utility>

#include "models/decoder_stack/stack.h"

namespace longview::models {

DistanceTables::DistanceTables(const StackConfig& config, WeightPlacer& place) {
  for (int layer = 0; layer < config.layers(); ++layer) {
    const StackWindow& window = config.windows[static_cast<size_t>(layer)];
    const auto first = std::find(config.windows.begin(), config.windows.end(), window);
    pattern_.push_back(static_cast<int>(first - config.windows.begin()));
    Table& table = tables_.emplace_back();
    if (window.dilation.empty() || pattern_.back() != layer) continue;
    const auto span = static_cast<size_t>(window.span());
    std::vector<float> values(static_cast<size_t>(config.heads) * span, kFar);
    for (int head = 0; head < config.heads; ++head) {
      const int step = window.dilation[static_cast<size_t>(head)];
      float* row = values.data() + static_cast<size_t>(head) * span;
      for (int key = 0; key <= *window.keys; ++key) row[key * step] = 0;
    }
    table = place.Values(std::move(values), config.heads, window.span());
  }
}

std::optional<kernels::Table> DistanceTables::Of(int layer) const {
  const Table& values = tables_[static_cast<size_t>(PatternOf(layer))];
  if (!values) return std::nullopt;
  kernels::Table table;
  table.data = values.device() != nullptr ? values.device() : values.values();
  table.entries = static_cast<int32_t>(values.width());
  table.head_stride = values.width();
  return table;
}

}  // namespace longview::models
