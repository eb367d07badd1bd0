#include "models/cvt_ls/model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/cvt_ls/family.h"

namespace longview::models {

absl::Status CvtForward::CheckDevice(const CvtConfig& config, const std::string& origin,
                                     const std::string& device) {
  for (size_t s = 0; s < kCvtStages; ++s) {
    if (config.stages[s].width % 2 == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(origin, ": dims: ", config.stages[s].width,
                                                   " must be even to run on ", device));
  }
  return absl::OkStatus();
}

std::vector<FeatureMap> CvtForward::MapsOf(const CvtConfig& config, ImageSize picture) {
  std::vector<FeatureMap> maps;
  const auto sizes = *CvtMaps(picture);
  for (const ImageSize size : sizes) {
    maps.push_back({config.stages[maps.size()].width, size, {}});
  }
  return maps;
}

absl::StatusOr<ModelInfo> DescribeCvtLs(const ModelDirectory& directory) {
  return CvtFamily::Describe(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadCvtLs(ModelDirectory directory,
                                                 const LoadOptions& options) {
  return CvtFamily::LoadModel(std::move(directory), options);
}

BackboneBuilder CvtLsBackbone() { return CvtFamily::Backbone("cvt_ls"); }

}  // namespace longview::models
