#include "models/vil/model.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/ops/weight_placer.h"
#include "models/vil/family.h"
#include "models/vision/device_family.h"
#include "models/vision/device_model.h"
#include "models/vision/device_room.h"

namespace longview::models {
namespace {

absl::Status CheckForDevice(const VilConfig& config, const std::string& origin,
                            const Device& device) {
  for (size_t s = 0; s < config.stages.size(); ++s) {
    const VilStage& stage = config.stages[s];
    const std::string where = absl::StrCat(origin, ": stage ", s + 1, ": ");
    if (stage.width % 2 != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "d", stage.width, " must be even to run on ", device.name()));
    }
    if (stage.attention == VilAttention::kPerformer &&
        stage.features > kernels::cuda::kMostPerformerFeatures) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, "f", stage.features, " is above ", kernels::cuda::kMostPerformerFeatures,
          ", the most random features on ", device.name()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

DeviceRunBytes DeviceVilBytes(const VilConfig& config, const VilWeights& weights, Compute compute,
                              ImageSize size) {
  const TorchParallelFor pool;
  ShapeCache shapes;
  VilContext context(config, weights, Compute::kFp32, pool, shapes);
  PlanForDevice(context);
  const VisionPicture picture = WholePicture(size, config.stages.size());
  return PartBytes(*VilForward::MakePass(context, {&picture, 1}, true), compute);
}

absl::StatusOr<std::unique_ptr<VisionFamily>> BuildDeviceVil(
    const ModelDirectory& directory, const BackbonePlace* place, Compute compute,
    std::unique_ptr<Device> device, int64_t most_pixels, ParseVilFamily parse) {
  absl::StatusOr<VilConfig> config =
      parse(directory.config, directory.common, directory.config_path, place != nullptr);
  if (!config.ok()) return config.status();
  absl::Status runs = CheckForDevice(*config, directory.config_path, *device);
  if (!runs.ok()) return runs;
  DeviceStore store(compute);
  const auto load = [&](std::optional<Compute> type) {
    return PlaceVilWeights(*config, place, directory.checkpoint, directory.path, type, store);
  };
  const absl::StatusOr<VilWeights> sizes = load(std::nullopt);
  if (!sizes.ok()) return sizes.status();
  const size_t weight_bytes = store.bytes();
  const auto of = [&](ImageSize size) -> std::optional<DeviceRunBytes> {
    if (!CheckVilSize(*config, size).ok()) return std::nullopt;
    return DeviceVilBytes(*config, *sizes, compute, size);
  };
  const absl::StatusOr<DeviceRunBytes> room =
      RoomForPictures(directory.path, *device, {weight_bytes, config->image, most_pixels, of});
  if (!room.ok()) return room.status();
  store.Allocate(*device);
  absl::StatusOr<VilWeights> weights = load(Compute::kFp32);
  if (!weights.ok()) return weights.status();
  return std::make_unique<DeviceVisionFamily<Vil>>(
      *std::move(config), *std::move(weights),
      DeviceSeat{std::move(device), compute, weight_bytes, *room}, store.TakeBlock());
}

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
