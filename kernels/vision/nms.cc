#include "kernels/vision/nms.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

// Boxes by coordinate, so that one box meets many at a time. `gone` is 1 for suppressed boxes.
struct Columns {
  float *x0, *y0, *x1, *y1, *area, *gone;
};

// One body for the widths a server meets; the loader picks one per process. The build keeps
// products and sums apart (CMakeLists.txt), so all of them give the same bits.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void SuppressBehind(
    const Columns& boxes, size_t best, size_t count, float threshold) {
  const float x0 = boxes.x0[best], y0 = boxes.y0[best];
  const float x1 = boxes.x1[best], y1 = boxes.y1[best], area = boxes.area[best];
  for (size_t i = best + 1; i < count; ++i) {
    const float width = std::min(x1, boxes.x1[i]) - std::max(x0, boxes.x0[i]);
    const float height = std::min(y1, boxes.y1[i]) - std::max(y0, boxes.y0[i]);
    const float shared = (width > 0 ? width : 0) * (height > 0 ? height : 0);
    const float overlap = shared / (area + boxes.area[i] - shared);
    boxes.gone[i] = overlap > threshold ? 1.0f : boxes.gone[i];
  }
}

}  // namespace

size_t SuppressOverlaps(std::span<const Box> boxes, float threshold, std::span<int32_t> kept,
                        std::span<float> workspace) {
  const size_t count = boxes.size();
  KERNEL_CHECK(kept.size() >= count && workspace.size() >= SuppressionFloats(count));
  float* at = workspace.data();
  const Columns columns = {
      at, at + count, at + 2 * count, at + 3 * count, at + 4 * count, at + 5 * count};
  for (size_t i = 0; i < count; ++i) {
    const Box& box = boxes[i];
    columns.x0[i] = box.x0;
    columns.y0[i] = box.y0;
    columns.x1[i] = box.x1;
    columns.y1[i] = box.y1;
    columns.area[i] = (box.x1 - box.x0) * (box.y1 - box.y0);
    columns.gone[i] = 0;
  }
  size_t stay = 0;
  for (size_t i = 0; i < count; ++i) {
    if (columns.gone[i] != 0) continue;
    kept[stay++] = static_cast<int32_t>(i);
    SuppressBehind(columns, i, count, threshold);
  }
  return stay;
}

}  // namespace longview::kernels
