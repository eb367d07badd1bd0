#include "models/layers/map_rows.h"

#include <cstring>

namespace longview::models {

void GatherTaps(const Convolution& convolution, const std::byte* input,
                const std::vector<MapRows>& inputs, const std::vector<MapRows>& outputs,
                int64_t row, std::byte* to) {
  size_t m = 0;
  for (; row >= outputs[m].rows(); ++m) row -= outputs[m].rows();
  const MapRows& map = inputs[m];
  const int y = static_cast<int>(row / outputs[m].width);
  const int x = static_cast<int>(row % outputs[m].width);
  const int64_t bytes = convolution.channels() * ElementBytes(convolution.layer.linear.compute());
  const int k = convolution.kernel;
  const int top = y * convolution.stride - k / 2, left = x * convolution.stride - k / 2;
  // Taps of one row lie side by side.
  const int begin = std::max(0, -left), end = std::min(k, map.width - left);
  for (int dy = 0; dy < k; ++dy, to += k * bytes) {
    const int line = top + dy;
    if (line < 0 || line >= map.height || end <= begin) {
      std::memset(to, 0, static_cast<size_t>(k * bytes));
      continue;
    }
    const std::byte* from = input + (map.row0 + int64_t{line} * map.width + left + begin) * bytes;
    std::memset(to, 0, static_cast<size_t>(begin * bytes));
    std::memcpy(to + begin * bytes, from, static_cast<size_t>((end - begin) * bytes));
    std::memset(to + end * bytes, 0, static_cast<size_t>((k - end) * bytes));
  }
}

}  // namespace longview::models
