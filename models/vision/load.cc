#include "models/vision/load.h"

#include <utility>

namespace longview::models {

absl::StatusOr<PlacedVision> BuildPlaced(std::unique_ptr<Device> device,
                                         const ModelDirectory& directory,
                                         const LoadOptions& options, const VisionBuilder& builder,
                                         const BackbonePlace* place,
                                         std::vector<std::string> notes) {
  const absl::StatusOr<DeviceObstacle> obstacle = builder.obstacle(directory, place);
  if (!obstacle.ok()) return obstacle.status();
  absl::StatusOr<Placement> placed =
      PlaceModel(std::move(device), *obstacle, directory, options, std::move(notes));
  if (!placed.ok()) return placed.status();
  absl::StatusOr<std::unique_ptr<VisionFamily>> family = absl::InternalError("not built");
  const absl::Status built = LoadInTurn(placed->name, placed->device.get(), [&] {
    family = builder.build(directory, place, placed->compute, std::move(placed->device), options);
    return family.status();
  });
  if (!built.ok()) return built;
  return PlacedVision{*std::move(family), placed->name, std::move(placed->notes)};
}

absl::StatusOr<ModelInfo> DescribeVision(const ModelDirectory& directory,
                                         const VisionBuilder& builder) {
  const absl::StatusOr<BuiltFacts> found = builder.describe(directory, nullptr);
  if (!found.ok()) return found.status();
  return VisionInfo(directory, found->facts, found->parameters);
}

absl::StatusOr<std::unique_ptr<Model>> LoadVisionAt(std::unique_ptr<Device> device,
                                                    ModelDirectory directory,
                                                    const LoadOptions& options,
                                                    const VisionBuilder& builder,
                                                    std::vector<std::string> notes) {
  auto kept = std::make_unique<ModelDirectory>(std::move(directory));
  absl::StatusOr<PlacedVision> placed =
      BuildPlaced(std::move(device), *kept, options, builder, nullptr, std::move(notes));
  if (!placed.ok()) return placed.status();
  return MakeVisionModel(std::move(kept), options, *std::move(placed));
}

}  // namespace longview::models
