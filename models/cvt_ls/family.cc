#include "models/cvt_ls/family.h"

#include <optional>

#include "models/vision/backbone.h"

namespace longview::models {

DeviceObstacle CvtForward::ObstacleOf(const CvtConfig& config) {
  for (size_t s = 0; s < kCvtStages; ++s) {
    if (auto odd = OddWidth("dims: ", config.stages[s].width)) return odd;
  }
  return std::nullopt;
}

std::vector<FeatureMap> CvtForward::MapsOf(const CvtConfig& config, ImageSize picture) {
  std::vector<FeatureMap> maps;
  const auto sizes = *CvtMaps(picture);
  for (const ImageSize size : sizes) {
    maps.push_back({config.stages[maps.size()].width, size, {}});
  }
  return maps;
}

VisionBuilder CvtLsBuilder() { return CvtFamily::Builder("cvt_ls"); }

}  // namespace longview::models
