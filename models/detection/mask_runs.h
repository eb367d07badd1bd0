// From a mask inside a box to the run lengths of the whole picture.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/vision/box.h"
#include "models/image/pipeline.h"

namespace longview::models {

// Pixel (i, j) reads the mask [side, side] at ((j + 0.5 - x0) / width * side - 0.5, likewise y),
// bilinear, zero outside; it is inside the object from `threshold` on. Runs go down the columns,
// pixels outside first (COCO's order), and add up to the picture.
// Costs about `side` steps per column of the box, however high the box is.
std::vector<uint32_t> MaskRuns(std::span<const float> mask, int side, const kernels::Box& box,
                               ImageSize picture, float threshold);

}  // namespace longview::models
