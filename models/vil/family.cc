#include "models/vil/family.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/vision/performer_api.h"
#include "models/status_macros.h"
#include "models/vision/backbone.h"

namespace longview::models {

absl::Status VilForward::CheckSize(const VilConfig& config, ImageSize size) {
  ASSIGN_OR_RETURN(const std::vector<ImageSize> maps, VilMaps(config, size));
  for (size_t s = 0; s < maps.size(); ++s) {
    if (config.Fits(s, maps[s])) continue;
    const char* hint = config.backbone || config.any_size
                           ? ""
                           : "; \"any_size\": true in config.json interpolates them";
    return absl::InvalidArgumentError(absl::StrCat(
        "pixels of ", size.height, " x ", size.width, ": the positions of stage ", s + 1, " fit ",
        config.backbone ? "images up to " : "images of ", config.image.height, " x ",
        config.image.width, config.backbone ? "" : " only", hint));
  }
  return absl::OkStatus();
}

DeviceObstacle VilForward::ObstacleOf(const VilConfig& config) {
  for (size_t s = 0; s < config.stages.size(); ++s) {
    const VilStage& stage = config.stages[s];
    const std::string where = absl::StrCat("stage ", s + 1, ": ");
    if (auto odd = OddWidth(where + "d", stage.width)) return odd;
    if (stage.attention != VilAttention::kPerformer) continue;
    auto many = AboveLimit(where + "f", stage.features, kernels::cuda::kMostPerformerFeatures,
                           "random features");
    if (many) return many;
  }
  return std::nullopt;
}

std::vector<FeatureMap> VilForward::MapsOf(const VilConfig& config, ImageSize picture) {
  std::vector<FeatureMap> maps;
  const std::vector<ImageSize> sizes = *VilMaps(config, picture);
  for (size_t s = 0; s < sizes.size(); ++s) {
    maps.push_back({config.stages[s].width, sizes[s], {}});
  }
  return maps;
}

VisionBuilder VilBuilder() { return VilFamily::Builder("vil"); }
VisionBuilder VilLsBuilder() { return VilLsFamily::Builder("vil_ls"); }

}  // namespace longview::models
