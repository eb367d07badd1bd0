// XLM-RoBERTa and RoBERTa as a family of the registry.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeRoberta(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadRoberta(ModelDirectory directory,
                                                   const LoadOptions& options);

}  // namespace longview::models
