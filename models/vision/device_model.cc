#include "models/vision/device_model.h"

#include <string>
#include <utility>
#include <vector>

#include "models/device/device_compute.h"

namespace longview::models {

absl::StatusOr<std::unique_ptr<VisionFamily>> BuildOnDevice(const ModelDirectory& directory,
                                                            Compute compute,
                                                            std::unique_ptr<Device> device,
                                                            BuildDeviceVision build) {
  absl::StatusOr<std::unique_ptr<VisionFamily>> family = absl::InternalError("not built");
  const absl::Status status = GuardDevice(device->name(), [&] {
    const Device::Turn turn(*device);
    family = build(directory, compute, std::move(device));
  });
  if (!status.ok()) family = status;
  return family;
}

absl::StatusOr<std::unique_ptr<Model>> LoadDeviceVision(ModelDirectory directory,
                                                        const LoadOptions& options,
                                                        std::unique_ptr<Device> device,
                                                        BuildDeviceVision build) {
  absl::StatusOr<ComputeChoice> choice = ChooseDeviceCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  const std::string name = device->name();
  return LoadVisionModelOn(name, std::move(directory), options, *std::move(choice),
                           [&](const ModelDirectory& kept, Compute compute) {
                             return BuildOnDevice(kept, compute, std::move(device), build);
                           });
}

absl::StatusOr<std::unique_ptr<Model>> LoadVision(ModelDirectory directory,
                                                  const LoadOptions& options, BuildVision on_cpu,
                                                  BuildDeviceVision on_device) {
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  if (*device != nullptr) {
    return LoadDeviceVision(std::move(directory), options, *std::move(device), on_device);
  }
  absl::StatusOr<ComputeChoice> choice = ChooseCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  choice->notes.insert(choice->notes.end(), notes.begin(), notes.end());
  return LoadVisionModelOn("cpu", std::move(directory), options, *std::move(choice), on_cpu);
}

}  // namespace longview::models
