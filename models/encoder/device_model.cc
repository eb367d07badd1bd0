#include "models/encoder/device_model.h"

#include <string>
#include <utility>
#include <vector>

#include "models/device/device_admission.h"
#include "models/device/device_compute.h"

namespace longview::models {
namespace {

// Documents of the longest kind that a workspace holds at once, where there is memory: more work on
// the device at a time than that gains nothing.
constexpr int kMostDocuments = 8;

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadDeviceEncoder(ModelDirectory directory,
                                                         const LoadOptions& options,
                                                         std::unique_ptr<Device> device,
                                                         BuildDeviceEncoder build) {
  absl::StatusOr<ComputeChoice> choice = ChooseDeviceCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  const std::string name = device->name();
  const auto guarded = [&](const ModelDirectory& kept, Compute compute) {
    absl::StatusOr<std::unique_ptr<EncoderFamily>> family = absl::InternalError("not built");
    const absl::Status status = GuardDevice(name, [&] {
      const Device::Turn turn(*device);
      family = build(kept, compute, std::move(device));
    });
    if (!status.ok()) family = status;
    return family;
  };
  return LoadEncoderOn(name, std::move(directory), *std::move(choice), guarded);
}

absl::StatusOr<std::unique_ptr<Model>> LoadEncoder(ModelDirectory directory,
                                                   const LoadOptions& options, BuildEncoder on_cpu,
                                                   BuildDeviceEncoder on_device) {
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  if (*device != nullptr) {
    return LoadDeviceEncoder(std::move(directory), options, *std::move(device), on_device);
  }
  absl::StatusOr<ComputeChoice> choice = ChooseCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  choice->notes.insert(choice->notes.end(), notes.begin(), notes.end());
  return LoadEncoderOn("cpu", std::move(directory), *std::move(choice), on_cpu);
}

absl::StatusOr<DeviceRunBytes> RoomForDocuments(const ModelDirectory& directory,
                                                const Device& device, size_t weight_bytes,
                                                const DeviceRunBytes& longest, int tokens) {
  const DeviceNeed need = {static_cast<double>(weight_bytes), static_cast<double>(longest.device()),
                           tokens};
  const absl::StatusOr<int> documents =
      DocumentsAtOnce(directory.path, device.name(), need, device.FreeBytes(), kMostDocuments);
  if (!documents.ok()) return documents.status();
  return longest.Times(static_cast<size_t>(*documents));
}

}  // namespace longview::models
