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
  DeviceVil(VilConfig config, VilOnDevice weights, DeviceSeat seat)
      : DeviceVisionFamily(std::move(config), std::move(weights.host), std::move(seat)),
        weights_on_device_(std::move(weights.device)),
        on_device_{&context_, &weights_on_device_, compute(), &device()} {
    PlanForDevice(context_);
  }

 private:
  std::unique_ptr<DevicePart> Plan(std::span<const DevicePicture> pictures) const override {
    return std::make_unique<DeviceVilPart>(on_device_, pictures);
  }

  const DeviceVilWeights weights_on_device_;
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
  const size_t weight_bytes = DeviceVilWeightBytes(*config, compute);
  const auto of = [&](ImageSize size) -> std::optional<DeviceRunBytes> {
    if (!CheckVilSize(*config, size).ok()) return std::nullopt;
    return DeviceVilBytes(*config, compute, *device, size);
  };
  const absl::StatusOr<DeviceRunBytes> room =
      RoomForPictures(directory.path, *device, {weight_bytes, config->image, most_pixels, of});
  if (!room.ok()) return room.status();
  absl::StatusOr<VilOnDevice> weights =
      LoadDeviceVilWeights(*config, place, directory.checkpoint, directory.path, compute, *device);
  if (!weights.ok()) return weights.status();
  return std::make_unique<DeviceVil>(*std::move(config), *std::move(weights),
                                     DeviceSeat{std::move(device), compute, weight_bytes, *room});
}

}  // namespace longview::models
