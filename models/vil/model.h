// Vision Longformer and ViL-LS as Models.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/directory/model_directory.h"
#include "models/model.h"
#include "models/vision/backbone.h"

namespace longview::models {

// The functions of registry.h.
absl::StatusOr<ModelInfo> DescribeVil(const ModelDirectory& directory);
absl::StatusOr<ModelInfo> DescribeVilLs(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadVil(ModelDirectory directory,
                                               const LoadOptions& options);
absl::StatusOr<std::unique_ptr<Model>> LoadVilLs(ModelDirectory directory,
                                                 const LoadOptions& options);

// As a detector's backbone: "vil", "vil_ls".
BackboneBuilder VilBackbone();
BackboneBuilder VilLsBackbone();

}  // namespace longview::models
