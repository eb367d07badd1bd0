#include "models/stack/distance_tables.h"

#include <algorithm>

namespace longview::models {

int StackWindow::span() const {
  if (!keys) return 0;
  const int widest = dilation.empty() ? 1 : *std::max_element(dilation.begin(), dilation.end());
  return *keys * widest + 1;
}

int StackConfig::longest_span() const {
  int longest = 1;
  for (const StackWindow& window : windows) {
    if (window.span() == 0) return 0;
    longest = std::max(longest, window.span());
  }
  return longest;
}

DistanceTables::DistanceTables(const StackConfig& config) : heads_(config.heads) {
  for (int layer = 0; layer < config.layers(); ++layer) {
    const StackWindow& window = config.windows[static_cast<size_t>(layer)];
    const auto first = std::find(config.windows.begin(), config.windows.end(), window);
    pattern_.push_back(static_cast<int>(first - config.windows.begin()));
    spans_.push_back(window.span());
    std::vector<float>& values = values_.emplace_back();
    if (window.dilation.empty() || pattern_.back() != layer) continue;
    values.assign(static_cast<size_t>(heads_) * static_cast<size_t>(window.span()), kFar);
    for (int head = 0; head < heads_; ++head) {
      const int step = window.dilation[static_cast<size_t>(head)];
      float* row = values.data() + static_cast<int64_t>(head) * window.span();
      for (int key = 0; key <= *window.keys; ++key) row[key * step] = 0;
    }
  }
}

std::optional<kernels::Table> DistanceTables::Of(int layer) const {
  const auto first = static_cast<size_t>(PatternOf(layer));
  if (values_[first].empty()) return std::nullopt;
  kernels::Table table;
  table.data = values_[first].data();
  table.entries = spans_[first];
  table.head_stride = spans_[first];
  return table;
}

}  // namespace longview::models
