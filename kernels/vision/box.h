// A rectangle in continuous coordinates: pixel (row i, column j) covers [j, j + 1) x [i, i + 1).
#pragma once

namespace longview::kernels {

struct Box {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool operator==(const Box&) const = default;
};

}  // namespace longview::kernels
