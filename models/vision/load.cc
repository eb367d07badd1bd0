#include "models/vision/load.h"

#include <utility>

#include "models/status_macros.h"

namespace longview::models {

absl::StatusOr<PlacedVision> BuildPlaced(std::unique_ptr<Device> device,
                                         const ModelDirectory& directory,
                                         const LoadOptions& options, const VisionBuilder& builder,
                                         const BackbonePlace* place,
                                         std::vector<std::string> notes) {
  ASSIGN_OR_RETURN(const DeviceObstacle obstacle, builder.obstacle(directory, place));
  ASSIGN_OR_RETURN(Placement placed,
                   PlaceModel(std::move(device), obstacle, directory, options, std::move(notes)));
  absl::StatusOr<std::unique_ptr<VisionFamily>> family = absl::InternalError("not built");
  RETURN_IF_ERROR(LoadInTurn(placed.name, placed.device.get(), [&] {
    family = builder.build(directory, place, placed.format(), std::move(placed.device), options);
    return family.status();
  }));
  RETURN_IF_ERROR(NoteInt8(directory, placed, placed.notes));
  return PlacedVision{*std::move(family), placed.name, placed.dtype(), std::move(placed.notes)};
}

absl::StatusOr<ModelInfo> DescribeVision(const ModelDirectory& directory,
                                         const VisionBuilder& builder) {
  ASSIGN_OR_RETURN(const BuiltFacts found, builder.describe(directory, nullptr));
  return VisionInfo(directory, found.facts, found.parameters);
}

absl::StatusOr<std::unique_ptr<Model>> LoadVisionAt(std::unique_ptr<Device> device,
                                                    ModelDirectory directory,
                                                    const LoadOptions& options,
                                                    const VisionBuilder& builder,
                                                    std::vector<std::string> notes) {
  auto kept = std::make_unique<ModelDirectory>(std::move(directory));
  ASSIGN_OR_RETURN(PlacedVision placed, BuildPlaced(std::move(device), *kept, options, builder,
                                                    nullptr, std::move(notes)));
  return MakeVisionModel(std::move(kept), options, std::move(placed));
}

}  // namespace longview::models
