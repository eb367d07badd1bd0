// An image model as a Model: what all families share between model.h and their blocks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "models/dense/compute_choice.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "models/model_directory.h"
#include "models/vision/facts.h"
#include "models/vision/family.h"

namespace longview::models {

// Loads a family's configuration and weights. The directory outlives what is returned.
using BuildVision = absl::FunctionRef<absl::StatusOr<std::unique_ptr<VisionFamily>>(
    const ModelDirectory& directory, Compute compute)>;

// preprocessor_config.json; unset without the file.
absl::StatusOr<std::optional<ImagePipeline>> ReadPipeline(const ModelDirectory& directory);

// Chooses the compute type, reads preprocessor_config.json, builds the family, makes it a model.
absl::StatusOr<std::unique_ptr<Model>> LoadVisionModel(ModelDirectory directory,
                                                       const LoadOptions& options,
                                                       BuildVision build);

// The same once the compute type is chosen. `device`: where the family computes.
absl::StatusOr<std::unique_ptr<Model>> LoadVisionModelOn(const std::string& device,
                                                         ModelDirectory directory,
                                                         const LoadOptions& options,
                                                         ComputeChoice choice, BuildVision build);

// A run that also counts seconds by part of the work, for benchmarks. REQUIRES: `model` came from
// LoadVisionModel.
std::unique_ptr<Run> BeginTimedVision(const Model& model, std::span<const Item* const> items,
                                      EncoderTimes* times);

// What the model would be, for registry.h's `describe`. Errors are those of
// preprocessor_config.json.
absl::StatusOr<ModelInfo> DescribeVision(const ModelDirectory& directory, const VisionFacts& facts,
                                         double parameters);

}  // namespace longview::models
