// A family of text encoders on a device, from loading to plans, where parts follow from sequences
// alone. It brings
//
//   Host      its class of weighted_family.h
//   Weights   in the device's memory: Assign(config, places) gives tensors their places, counting
//             them where the carver has no memory; Fill(config, checkpoint, origin, fill) reads the
//             checkpoint to them and returns the host's share; `block`
//   Part      of device_part.h, Part(DeviceEncoderContext<Config, Weights>, sequences)
//
// and derives from DevicePartsFamily<Host, Part>, adding heads and the rows they read.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "models/device/device_weights.h"
#include "models/encoder/device_family.h"
#include "models/encoder/device_model.h"
#include "models/encoder/device_part.h"
#include "models/encoder/model.h"

namespace longview::models {

// What every part of one model shares. Borrowed, immutable. While a model is planned that is not
// loaded yet there are no weights.
template <class ConfigT, class WeightsT>
struct DevicePartContext {
  using Config = ConfigT;
  using Weights = WeightsT;

  const Config* config = nullptr;
  const Weights* weights = nullptr;
  Compute compute = Compute::kFp32;
  const Device* device = nullptr;
};

template <class Host, class PartT>
class DevicePartsFamily : public DeviceEncoderFamily<Host> {
 public:
  using Part = PartT;
  using Weights = typename Part::Context::Weights;
  using Frame = DeviceEncoderFamily<Host>;

  DevicePartsFamily(typename Host::Config config, typename Host::Weights host, Weights weights,
                    DeviceSeat seat)
      : Frame(std::move(config), std::move(host), std::move(seat)),
        weights_(std::move(weights)),
        parts_{&this->config_, &weights_, this->compute(), &this->device()} {}

 private:
  std::unique_ptr<DevicePart> Plan(typename Frame::Sequences sequences) const final {
    return std::make_unique<Part>(parts_, sequences);
  }

  const Weights weights_;
  const typename Part::Context parts_;
};

// A BuildDeviceEncoder of a class derived from DevicePartsFamily. RESOURCE_EXHAUSTED as
// RoomForDocuments. Rows of 16-bit numbers are copied word by word: INVALID_ARGUMENT if the width
// is odd.
template <class Family>
absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildOnDevice(const ModelDirectory& directory,
                                                             Compute compute,
                                                             std::unique_ptr<Device> device) {
  auto config = Family::Read(directory);
  if (!config.ok()) return config.status();
  if (config->width % 2 != 0) {
    return absl::InvalidArgumentError(directory.config_path +
                                      ": the width must be even to run on " + device->name());
  }
  const int tokens = MostTokens(directory, Family::FactsOf(*config).max_tokens);
  typename Family::Weights weights;
  Carver counted(nullptr);
  weights.Assign(*config, DevicePlaces(compute, counted));
  const typename Family::Part::Context unloaded = {&*config, nullptr, compute, device.get()};
  const DeviceRunBytes longest =
      LongestDocumentBytes(tokens, [&](DeviceEncoderPart::Sequences sequences) {
        return typename Family::Part(unloaded, sequences).most_bytes();
      });
  const absl::StatusOr<DeviceRunBytes> room =
      RoomForDocuments(directory, *device, counted.used(), longest, tokens);
  if (!room.ok()) return room.status();
  weights.block = std::make_unique<DeviceBlock>(*device, counted.used());
  Carver carver(weights.block->data());
  weights.Assign(*config, DevicePlaces(compute, carver));
  DeviceFill fill(*device);
  auto host = weights.Fill(*config, directory.checkpoint, directory.path, fill);
  if (!host.ok()) return host.status();
  return std::make_unique<Family>(*std::move(config), *std::move(host), std::move(weights),
                                  DeviceSeat{std::move(device), compute, counted.used(), *room});
}

}  // namespace longview::models
