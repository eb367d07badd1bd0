// Detectors on the image families of this project as a Model.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeDetector(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadDetector(ModelDirectory directory,
                                                    const LoadOptions& options);

}  // namespace longview::models
