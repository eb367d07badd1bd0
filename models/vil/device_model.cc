#include "models/vil/device_model.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/vil/device_part.h"
#include "models/vil/family.h"
#include "models/vision/device_family.h"
#include "models/vision/device_room.h"

namespace longview::models {
namespace {

class DeviceVil final : public DeviceVisionFamily<Vil> {
 public:
  DeviceVil(VilConfig config, VilWeights weights, DeviceSeat seat,
            std::unique_ptr<DeviceBlock> store)
      : DeviceVisionFamily(std::move(config), std::move(weights), std::move(seat)),
        store_(std::move(store)),
        on_device_{&context_, &weights_, compute(), &device()} {
    PlanForDevice(context_);
  }

 private:
  std::unique_ptr<DevicePart> Plan(std::span<const DevicePicture> pictures) const override {
    return std::make_unique<DeviceVilPart>(on_device_, pictures);
  }

  const std::unique_ptr<DeviceBlock> store_;  // Of the weights.
  const DeviceVilContext on_device_;
};

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
    return DeviceVilBytes(*config, compute, *device, size);
  };
  const absl::StatusOr<DeviceRunBytes> room =
      RoomForPictures(directory.path, *device, {weight_bytes, config->image, most_pixels, of});
  if (!room.ok()) return room.status();
  store.Allocate(*device);
  absl::StatusOr<VilWeights> weights = load(Compute::kFp32);
  if (!weights.ok()) return weights.status();
  return std::make_unique<DeviceVil>(*std::move(config), *std::move(weights),
                                     DeviceSeat{std::move(device), compute, weight_bytes, *room},
                                     store.TakeBlock());
}

}  // namespace longview::models
