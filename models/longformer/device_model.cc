#include "models/longformer/device_model.h"

#include <utility>

#include "models/encoder/device_family.h"
#include "models/encoder/device_model.h"
#include "models/longformer/device_bytes.h"
#include "models/longformer/device_part.h"
#include "models/longformer/family.h"

namespace longview::models {
namespace {

class DeviceLongformer final : public DeviceEncoderFamily<Longformer> {
 public:
  DeviceLongformer(LongformerConfig config, LongformerOnDevice weights, DeviceSeat seat)
      : DeviceEncoderFamily(std::move(config), std::move(weights.host), std::move(seat)),
        weights_(std::move(weights.device)),
        on_device_{&config_, &weights_, compute(), &device()} {}

 private:
  std::unique_ptr<DevicePart> Plan(Sequences sequences) const override {
    return std::make_unique<DeviceLongformerPart>(on_device_, sequences);
  }
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs,
                                       std::span<const SequenceRows>) const override {
    return models::ComputeHeads(context_, inputs);
  }

  const DeviceLongformerWeights weights_;
  const DeviceEncoderContext on_device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildDeviceLongformer(
    const ModelDirectory& directory, Compute compute, std::unique_ptr<Device> device) {
  absl::StatusOr<LongformerConfig> config = Longformer::Read(directory);
  if (!config.ok()) return config.status();
  if (config->width % 2 != 0) {
    return absl::InvalidArgumentError(directory.config_path +
                                      ": hidden_size must be even to run on " + device->name());
  }
  const int tokens = MostTokens(directory, config->max_tokens());
  const size_t weight_bytes = DeviceWeightBytes(*config, compute);
  const absl::StatusOr<DeviceRunBytes> room = RoomForDocuments(
      directory, *device, weight_bytes, LongestDocumentBytes(*config, compute, tokens), tokens);
  if (!room.ok()) return room.status();
  absl::StatusOr<LongformerOnDevice> weights =
      LoadDeviceLongformerWeights(*config, directory.checkpoint, directory.path, compute, *device);
  if (!weights.ok()) return weights.status();
  return std::make_unique<DeviceLongformer>(
      *std::move(config), *std::move(weights),
      DeviceSeat{std::move(device), compute, weight_bytes, *room});
}

}  // namespace longview::models
