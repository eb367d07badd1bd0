// The bidirectional Transformer-LS text encoder as a family of the registry.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/model_directory.h"
#include "models/transformer_ls_text/config.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeLsText(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadLsText(ModelDirectory directory,
                                                  const LoadOptions& options);

}  // namespace longview::models
