#include <algorithm>
#include <cmath>

#include "kernels/base/bfloat16.h"
#include "kernels/vision/roi_align.h"

namespace longview::kernels {
namespace {

double Pixel(const PyramidMap& map, int y, int x, int c) {
  const int64_t at = (int64_t{y} * map.width + x) * map.channels + c;
  if (map.dtype == DType::kFloat32) return static_cast<const float*>(map.data)[at];
  return BFloat16ToFloat(static_cast<const uint16_t*>(map.data)[at]);
}

double Sample(const PyramidMap& map, float y, float x, int c) {
  if (y < -1 || y > map.height || x < -1 || x > map.width) return 0;
  y = std::max(y, 0.0f);
  x = std::max(x, 0.0f);
  int top = static_cast<int>(y), left = static_cast<int>(x);
  int bottom = top + 1, right = left + 1;
  if (top >= map.height - 1) y = static_cast<float>(top = bottom = map.height - 1);
  if (left >= map.width - 1) x = static_cast<float>(left = right = map.width - 1);
  const double down = y - static_cast<float>(top), across = x - static_cast<float>(left);
  return (1 - down) * (1 - across) * Pixel(map, top, left, c) +
         (1 - down) * across * Pixel(map, top, right, c) +
         down * (1 - across) * Pixel(map, bottom, left, c) +
         down * across * Pixel(map, bottom, right, c);
}

}  // namespace

void AlignRegionRef(const PyramidMap& map, const Box& region, int bins, float* out) {
  const float y0 = region.y0 * map.scale - 0.5f, x0 = region.x0 * map.scale - 0.5f;
  const float height = (region.y1 * map.scale - 0.5f - y0) / static_cast<float>(bins);
  const float width = (region.x1 * map.scale - 0.5f - x0) / static_cast<float>(bins);
  const int down = static_cast<int>(std::ceil(height)), across = static_cast<int>(std::ceil(width));
  for (int by = 0; by < bins; ++by) {
    for (int bx = 0; bx < bins; ++bx) {
      for (int c = 0; c < map.channels; ++c) {
        double sum = 0;
        for (int i = 0; i < down; ++i) {
          const float y = y0 + by * height + (i + 0.5f) * height / static_cast<float>(down);
          for (int j = 0; j < across; ++j) {
            const float x = x0 + bx * width + (j + 0.5f) * width / static_cast<float>(across);
            sum += Sample(map, y, x, c);
          }
        }
        *out++ = static_cast<float>(sum / std::max(1, down * across));
      }
    }
  }
}

}  // namespace longview::kernels
