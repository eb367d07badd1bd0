#include "models/vil/model.h"

#include <utility>

#include "models/vil/device_model.h"
#include "models/vil/family.h"
#include "models/vision/device_model.h"

namespace longview::models {
namespace {

using VilEntry = VisionEntry<Vil, ParseVilConfig>;
using VilLsEntry = VisionEntry<Vil, ParseVilLsConfig>;

}  // namespace

BackboneBuilder VilBackbone() {
  BackboneBuilder builder = VilEntry::Backbone("vil");
  builder.build_on_device = [](const ModelDirectory& directory, const BackbonePlace& place,
                               Compute compute, std::unique_ptr<Device> device,
                               int64_t most_pixels) {
    return BuildDeviceVil(directory, &place, compute, std::move(device), most_pixels);
  };
  return builder;
}
BackboneBuilder VilLsBackbone() { return VilLsEntry::Backbone("vil_ls"); }

absl::StatusOr<ModelInfo> DescribeVil(const ModelDirectory& directory) {
  return VilEntry::Describe(directory);
}
absl::StatusOr<ModelInfo> DescribeVilLs(const ModelDirectory& directory) {
  return VilLsEntry::Describe(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadVil(ModelDirectory directory,
                                               const LoadOptions& options) {
  return LoadVision(
      std::move(directory), options, VilEntry::BuildModel,
      [&](const ModelDirectory& from, Compute compute, std::unique_ptr<Device> device) {
        return BuildDeviceVil(from, nullptr, compute, std::move(device), options.max_image_pixels);
      });
}
absl::StatusOr<std::unique_ptr<Model>> LoadVilLs(ModelDirectory directory,
                                                 const LoadOptions& options) {
  return VilLsEntry::Load(std::move(directory), options);
}

}  // namespace longview::models
