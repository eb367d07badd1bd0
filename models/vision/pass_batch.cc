#include "models/vision/pass_batch.h"

#include <utility>

namespace longview::models {

std::vector<VisionPicture> PicturesOf(std::span<const VisionInput> inputs) {
  std::vector<VisionPicture> pictures;
  for (const VisionInput& input : inputs) {
    pictures.push_back({input.pixels->size, input.pixels, input.stages});
  }
  return pictures;
}

}  // namespace longview::models
