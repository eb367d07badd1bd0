#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/vision/nms.h"

namespace longview::kernels {

float Overlap(const Box& a, const Box& b) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const float shared = std::max(width, 0.0f) * std::max(height, 0.0f);
  const float area_a = (a.x1 - a.x0) * (a.y1 - a.y0);
  const float area_b = (b.x1 - b.x0) * (b.y1 - b.y0);
  const float overlap = shared / (area_a + area_b - shared);
  return overlap > 0 ? overlap : 0;
}

size_t SuppressOverlapsRef(std::span<const Box> boxes, float threshold, std::span<int32_t> kept) {
  KERNEL_CHECK(kept.size() >= boxes.size());
  size_t stay = 0;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const bool goes = std::any_of(kept.begin(), kept.begin() + stay, [&](int32_t better) {
      return Overlap(boxes[better], boxes[i]) > threshold;
    });
    if (!goes) kept[stay++] = static_cast<int32_t>(i);
  }
  return stay;
}

}  // namespace longview::kernels
