// A forward of a family of image models over a ragged batch of pictures. Its results are the
// vectors that enter the head of all pictures, then the wanted maps [channels, rows, columns],
// picture by picture, stages rising.
#pragma once

#include <vector>

#include "models/forward/forward.h"
#include "models/image/pipeline.h"

namespace longview::models {

// One picture of a pass.
struct VisionPicture {
  ImageSize size;
  const PixelValues* pixels = nullptr;  // Null: only bytes are asked for.
  std::vector<int> stages;              // Wanted stages, rising.
};

// One whose bytes are asked for: with all maps, which is the most it may need.
VisionPicture WholePicture(ImageSize size, size_t stages);

}  // namespace longview::models
