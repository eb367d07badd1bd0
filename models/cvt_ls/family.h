// CvT*-LS as a family of image models; see vision/staged_family.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/cvt_ls/pass.h"
#include "models/vision/staged_family.h"

namespace longview::models {

struct CvtForward {
  using Config = CvtConfig;
  using Weights = CvtWeights;
  using Context = CvtContext;
  static constexpr auto Parse = ParseCvtConfig;
  static constexpr auto Load = LoadCvtWeights;
  static constexpr auto CheckSize = CheckCvtSize;

  static DeviceObstacle ObstacleOf(const CvtConfig& config);
  static std::unique_ptr<Forward> MakePass(const CvtContext& context,
                                           std::span<const VisionPicture> pictures, bool) {
    return std::make_unique<CvtPass>(context, pictures);
  }
  static std::vector<FeatureMap> MapsOf(const CvtConfig& config, ImageSize picture);
};

using CvtFamily = StagedFamily<CvtForward>;

}  // namespace longview::models
