// An image model as a Model: what all families share between model.h and their blocks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/directory/model_directory.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "models/vision/family.h"

namespace longview::models {

// A loaded family, and where it computes.
struct PlacedVision {
  std::unique_ptr<VisionFamily> family;
  std::string device = "cpu";
  std::string dtype = "fp32";
  std::vector<std::string> notes;
};

// preprocessor_config.json; unset without the file.
absl::StatusOr<std::optional<ImagePipeline>> ReadPipeline(const ModelDirectory& directory);

// The family as a model, with preprocessor_config.json. `directory` is the family's.
absl::StatusOr<std::unique_ptr<Model>> MakeVisionModel(std::unique_ptr<ModelDirectory> directory,
                                                       const LoadOptions& options,
                                                       PlacedVision placed);

// Describes a model of these facts. Errors are those of preprocessor_config.json.
absl::StatusOr<ModelInfo> VisionInfo(const ModelDirectory& directory, const VisionFacts& facts,
                                     double parameters);

}  // namespace longview::models
