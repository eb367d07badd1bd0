// The autoregressive Composite Slice Transformer as a family of the registry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/cst/config.h"
#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/generation/passes/token_model.h"
#include "models/model.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeCstLm(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadCstLm(ModelDirectory directory,
                                                 const LoadOptions& options);

// The model on `device`; null: on the host. RESOURCE_EXHAUSTED as ForwardDecoder::Create.
absl::StatusOr<std::unique_ptr<Model>> LoadCstLmAt(std::unique_ptr<Device> device,
                                                   ModelDirectory directory,
                                                   const LoadOptions& options,
                                                   std::vector<std::string> notes = {});

// For ForwardDecoder. `origin` begins messages.
std::unique_ptr<TokenModel> MakeCstLm(const CstConfig& config, Checkpoint checkpoint,
                                      const std::string& origin);

}  // namespace longview::models
