// Loading text encoders whose layers are on a device.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/device/device_workspace.h"
#include "models/encoder/model.h"

namespace longview::models {

// Loads a family's configuration and weights. The directory outlives what is returned. May throw
// DeviceError and what LibTorch throws; within a Device::Turn.
using BuildDeviceEncoder = absl::FunctionRef<absl::StatusOr<std::unique_ptr<EncoderFamily>>(
    const ModelDirectory& directory, Compute compute, std::unique_ptr<Device> device)>;

// The model on `device`.
absl::StatusOr<std::unique_ptr<Model>> LoadDeviceEncoder(ModelDirectory directory,
                                                         const LoadOptions& options,
                                                         std::unique_ptr<Device> device,
                                                         BuildDeviceEncoder build);

// The model where `options` say: on a device by `on_device`, else on the CPU by `on_cpu`, with a
// note where a device was asked for (DeviceForModel).
absl::StatusOr<std::unique_ptr<Model>> LoadEncoder(ModelDirectory directory,
                                                   const LoadOptions& options, BuildEncoder on_cpu,
                                                   BuildDeviceEncoder on_device);

// The workspace of a model, for as many documents of the longest kind at once as fit the device's
// free memory and are of use. `longest`: what one of `tokens` tokens needs at most.
// RESOURCE_EXHAUSTED if weights and one do not fit: the message has need and limit.
absl::StatusOr<DeviceRunBytes> RoomForDocuments(const ModelDirectory& directory,
                                                const Device& device, size_t weight_bytes,
                                                const DeviceRunBytes& longest, int tokens);

}  // namespace longview::models
