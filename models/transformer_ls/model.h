// Transformer-LS language models as the server sees them: the two functions of registry.h.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

absl::StatusOr<ModelInfo> DescribeTransformerLs(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadTransformerLs(ModelDirectory directory,
                                                         const LoadOptions& options);

}  // namespace longview::models
