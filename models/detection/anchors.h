// Reference boxes and the code of boxes relative to them.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "kernels/vision/box.h"
#include "models/detection/config.h"
#include "models/image/pipeline.h"

namespace longview::models {

using kernels::Box;

// The anchors of one level around a grid point: sizes outer, ratios inner. A size S and a ratio
// r = height / width give width sqrt(S^2 / r).
std::vector<Box> CellAnchors(const std::vector<float>& sizes, const std::vector<float>& ratios);

// The anchors of a level, made on demand: those of grid point (y, x) lie at (x, y) * stride.
class AnchorGrid {
 public:
  // `offset` in strides.
  AnchorGrid(std::vector<Box> cell, int stride, float offset)
      : cell_(std::move(cell)), stride_(stride), shift_(offset * static_cast<float>(stride)) {}

  int count() const { return static_cast<int>(cell_.size()); }
  Box At(int y, int x, int anchor) const;

 private:
  std::vector<Box> cell_;
  int stride_;
  float shift_;
};

// The box that deltas (dx, dy, dw, dh) describe relative to `reference`: centre moved by fractions
// of its size, size scaled by exp, at most by 1000 / 16.
Box DecodeBox(const Box& reference, const float* deltas, const BoxWeights& weights);

bool IsFinite(const Box& box);
Box Clipped(const Box& box, float width, float height);
inline bool HasArea(const Box& box) { return box.x1 > box.x0 && box.y1 > box.y0; }

}  // namespace longview::models
