// Transformer-LS language models as the server sees them: the two functions of registry.h, and what
// loads one onto a device.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

absl::StatusOr<ModelInfo> DescribeTransformerLs(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadTransformerLs(ModelDirectory directory,
                                                         const LoadOptions& options);

// As DeviceLsDecoder::Create.
absl::StatusOr<std::unique_ptr<Model>> LoadDeviceTransformerLs(ModelDirectory directory,
                                                               const LoadOptions& options,
                                                               std::unique_ptr<Device> device);

}  // namespace longview::models
