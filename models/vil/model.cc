#include "models/vil/model.h"

#include <utility>

#include "models/vil/device_model.h"
#include "models/vil/family.h"
#include "models/vision/device_model.h"

namespace longview::models {
namespace {

using VilEntry = VisionEntry<Vil, ParseVilConfig>;
using VilLsEntry = VisionEntry<Vil, ParseVilLsConfig>;

template <class Entry, ParseVilFamily kParse>
BackboneBuilder OnDevicesToo(std::string_view name) {
  BackboneBuilder builder = Entry::Backbone(name);
  builder.build_on_device = [](const ModelDirectory& directory, const BackbonePlace& place,
                               Compute compute, std::unique_ptr<Device> device,
                               int64_t most_pixels) {
    return BuildDeviceVil(directory, &place, compute, std::move(device), most_pixels, kParse);
  };
  return builder;
}

template <class Entry, ParseVilFamily kParse>
absl::StatusOr<std::unique_ptr<Model>> LoadFamily(ModelDirectory directory,
                                                  const LoadOptions& options) {
  return LoadVision(
      std::move(directory), options, Entry::BuildModel,
      [&](const ModelDirectory& from, Compute compute, std::unique_ptr<Device> device) {
        return BuildDeviceVil(from, nullptr, compute, std::move(device), options.max_image_pixels,
                              kParse);
      });
}

}  // namespace

BackboneBuilder VilBackbone() { return OnDevicesToo<VilEntry, ParseVilConfig>("vil"); }
BackboneBuilder VilLsBackbone() { return OnDevicesToo<VilLsEntry, ParseVilLsConfig>("vil_ls"); }

absl::StatusOr<ModelInfo> DescribeVil(const ModelDirectory& directory) {
  return VilEntry::Describe(directory);
}
absl::StatusOr<ModelInfo> DescribeVilLs(const ModelDirectory& directory) {
  return VilLsEntry::Describe(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadVil(ModelDirectory directory,
                                               const LoadOptions& options) {
  return LoadFamily<VilEntry, ParseVilConfig>(std::move(directory), options);
}
absl::StatusOr<std::unique_ptr<Model>> LoadVilLs(ModelDirectory directory,
                                                 const LoadOptions& options) {
  return LoadFamily<VilLsEntry, ParseVilLsConfig>(std::move(directory), options);
}

}  // namespace longview::models
