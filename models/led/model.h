// LED as a family of the registry: encoder-decoder models of text, "text2text-generation".
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeLed(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadLed(ModelDirectory directory,
                                               const LoadOptions& options);

}  // namespace longview::models
