// Vision Longformer and ViL-LS as families of image models; see vision/staged_family.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/vil/pass.h"
#include "models/vision/family.h"
#include "models/vision/staged_family.h"

namespace longview::models {

struct VilForward {
  using Config = VilConfig;
  using Weights = VilWeights;
  using Context = VilContext;
  static constexpr auto Parse = ParseVilConfig;
  static constexpr auto Load = LoadVilWeights;

  static absl::Status CheckSize(const VilConfig& config, ImageSize size);
  static DeviceObstacle ObstacleOf(const VilConfig& config);
  static std::unique_ptr<Forward> MakePass(const VilContext& context,
                                           std::span<const VisionPicture> pictures, bool measure) {
    return std::make_unique<VilPass>(context, pictures, measure);
  }
  static std::vector<FeatureMap> MapsOf(const VilConfig& config, ImageSize picture);
};
struct VilLsForward : VilForward {
  static constexpr auto Parse = ParseVilLsConfig;
};

using VilFamily = StagedFamily<VilForward>;
using VilLsFamily = StagedFamily<VilLsForward>;

}  // namespace longview::models
