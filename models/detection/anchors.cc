#include "models/detection/anchors.h"

#include <algorithm>
#include <cmath>

namespace longview::models {

std::vector<Box> CellAnchors(const std::vector<float>& sizes, const std::vector<float>& ratios) {
  std::vector<Box> cell;
  for (const float size : sizes) {
    for (const float ratio : ratios) {
      const double width = std::sqrt(double{size} * size / ratio), height = ratio * width;
      cell.push_back({static_cast<float>(-width / 2), static_cast<float>(-height / 2),
                      static_cast<float>(width / 2), static_cast<float>(height / 2)});
    }
  }
  return cell;
}

Box AnchorGrid::At(int y, int x, int anchor) const {
  const Box& cell = cell_[anchor];
  const float right = static_cast<float>(x) * static_cast<float>(stride_) + shift_;
  const float down = static_cast<float>(y) * static_cast<float>(stride_) + shift_;
  return {right + cell.x0, down + cell.y0, right + cell.x1, down + cell.y1};
}

Box DecodeBox(const Box& reference, const float* deltas, const BoxWeights& weights) {
  const float most = std::log(1000.0f / 16.0f);
  const float width = reference.x1 - reference.x0, height = reference.y1 - reference.y0;
  const float x = reference.x0 + 0.5f * width, y = reference.y0 + 0.5f * height;
  const float centre_x = deltas[0] / weights[0] * width + x;
  const float centre_y = deltas[1] / weights[1] * height + y;
  const float new_width = std::exp(std::min(deltas[2] / weights[2], most)) * width;
  const float new_height = std::exp(std::min(deltas[3] / weights[3], most)) * height;
  return {centre_x - 0.5f * new_width, centre_y - 0.5f * new_height, centre_x + 0.5f * new_width,
          centre_y + 0.5f * new_height};
}

bool IsFinite(const Box& box) {
  return std::isfinite(box.x0) && std::isfinite(box.y0) && std::isfinite(box.x1) &&
         std::isfinite(box.y1);
}

Box Clipped(const Box& box, float width, float height) {
  return {std::clamp(box.x0, 0.0f, width), std::clamp(box.y0, 0.0f, height),
          std::clamp(box.x1, 0.0f, width), std::clamp(box.y1, 0.0f, height)};
}

}  // namespace longview::models
