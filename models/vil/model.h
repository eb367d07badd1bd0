// Vision Longformer as a Model.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/model_directory.h"
#include "models/vision/backbone.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeVil(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadVil(ModelDirectory directory,
                                               const LoadOptions& options);

// As a detector's backbone: "vil".
BackboneBuilder VilBackbone();

}  // namespace longview::models
