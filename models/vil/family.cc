#include "models/vil/family.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/vision/performer_api.h"
#include "models/vil/model.h"

namespace longview::models {

absl::Status VilForward::CheckSize(const VilConfig& config, ImageSize size) {
  const absl::StatusOr<std::vector<ImageSize>> maps = VilMaps(config, size);
  if (!maps.ok()) return maps.status();
  for (size_t s = 0; s < maps->size(); ++s) {
    if (config.Fits(s, (*maps)[s])) continue;
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

absl::Status VilForward::CheckDevice(const VilConfig& config, const std::string& origin,
                                     const std::string& device) {
  for (size_t s = 0; s < config.stages.size(); ++s) {
    const VilStage& stage = config.stages[s];
    const std::string where = absl::StrCat(origin, ": stage ", s + 1, ": ");
    if (stage.width % 2 != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "d", stage.width, " must be even to run on ", device));
    }
    if (stage.attention == VilAttention::kPerformer &&
        stage.features > kernels::cuda::kMostPerformerFeatures) {
      return absl::InvalidArgumentError(absl::StrCat(where, "f", stage.features, " is above ",
                                                     kernels::cuda::kMostPerformerFeatures,
                                                     ", the most random features on ", device));
    }
  }
  return absl::OkStatus();
}

std::vector<FeatureMap> VilForward::MapsOf(const VilConfig& config, ImageSize picture) {
  std::vector<FeatureMap> maps;
  const std::vector<ImageSize> sizes = *VilMaps(config, picture);
  for (size_t s = 0; s < sizes.size(); ++s) {
    maps.push_back({config.stages[s].width, sizes[s], {}});
  }
  return maps;
}

BackboneBuilder VilBackbone() { return VilFamily::Backbone("vil"); }
BackboneBuilder VilLsBackbone() { return VilLsFamily::Backbone("vil_ls"); }

absl::StatusOr<ModelInfo> DescribeVil(const ModelDirectory& directory) {
  return VilFamily::Describe(directory);
}
absl::StatusOr<ModelInfo> DescribeVilLs(const ModelDirectory& directory) {
  return VilLsFamily::Describe(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadVil(ModelDirectory directory,
                                               const LoadOptions& options) {
  return VilFamily::LoadModel(std::move(directory), options);
}
absl::StatusOr<std::unique_ptr<Model>> LoadVilLs(ModelDirectory directory,
                                                 const LoadOptions& options) {
  return VilLsFamily::LoadModel(std::move(directory), options);
}

}  // namespace longview::models
