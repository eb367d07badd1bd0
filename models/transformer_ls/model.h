// Transformer-LS language models as the server sees them: the two functions of registry.h, and what
// loads one where it is told to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

absl::StatusOr<ModelInfo> DescribeTransformerLs(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadTransformerLs(ModelDirectory directory,
                                                         const LoadOptions& options);

// On `device`; null: on the CPU. `notes` are put in front of the model's own.
absl::StatusOr<std::unique_ptr<Model>> LoadTransformerLsAt(std::unique_ptr<Device> device,
                                                           ModelDirectory directory,
                                                           const LoadOptions& options,
                                                           std::vector<std::string> notes = {});

}  // namespace longview::models
