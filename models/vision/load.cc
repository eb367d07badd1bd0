#include "models/vision/load.h"

#include <string>
#include <utility>
#include <vector>

#include "models/dense/compute_choice.h"
#include "models/device/device_compute.h"

namespace longview::models {
namespace {

absl::StatusOr<std::unique_ptr<Model>> Load(std::unique_ptr<Device> device,
                                            ModelDirectory directory, const LoadOptions& options,
                                            std::vector<std::string> notes, BuildVision build) {
  auto kept = std::make_unique<ModelDirectory>(std::move(directory));
  absl::StatusOr<PlacedVision> placed = BuildPlaced(*kept, options, std::move(device), build);
  if (!placed.ok()) return placed.status();
  placed->notes.insert(placed->notes.end(), notes.begin(), notes.end());
  return MakeVisionModel(std::move(kept), options, *std::move(placed));
}

}  // namespace

absl::StatusOr<PlacedVision> BuildPlaced(const ModelDirectory& directory,
                                         const LoadOptions& options, std::unique_ptr<Device> device,
                                         BuildVision build) {
  const auto choose = device != nullptr ? ChooseDeviceCompute : ChooseCompute;
  absl::StatusOr<ComputeChoice> choice =
      choose(options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  PlacedVision placed;
  placed.notes = std::move(choice->notes);
  absl::StatusOr<std::unique_ptr<VisionFamily>> family = absl::InternalError("not built");
  if (device == nullptr) {
    family = build(directory, choice->compute, nullptr);
  } else {
    placed.device = device->name();
    const absl::Status status = GuardDevice(placed.device, [&] {
      const Device::Turn turn(*device);
      family = build(directory, choice->compute, std::move(device));
    });
    if (!status.ok()) return status;
  }
  if (!family.ok()) return family.status();
  placed.family = *std::move(family);
  return placed;
}

absl::StatusOr<std::unique_ptr<Model>> LoadVisionOn(std::unique_ptr<Device> device,
                                                    ModelDirectory directory,
                                                    const LoadOptions& options, BuildVision build) {
  return Load(std::move(device), std::move(directory), options, {}, build);
}

absl::StatusOr<std::unique_ptr<Model>> LoadVision(ModelDirectory directory,
                                                  const LoadOptions& options, BuildVision build) {
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<Device>> device = DeviceForModel(options.device, notes);
  if (!device.ok()) return device.status();
  return Load(*std::move(device), std::move(directory), options, std::move(notes), build);
}

}  // namespace longview::models
