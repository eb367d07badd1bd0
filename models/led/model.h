// LED as a family of the registry: encoder-decoder models of text, "text2text-generation".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/model.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeLed(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadLed(ModelDirectory directory,
                                               const LoadOptions& options);

// The model on `device`; null: on the host. RESOURCE_EXHAUSTED as ForwardDecoder::Create.
absl::StatusOr<std::unique_ptr<Model>> LoadLedAt(std::unique_ptr<Device> device,
                                                 ModelDirectory directory,
                                                 const LoadOptions& options,
                                                 std::vector<std::string> notes = {});

}  // namespace longview::models
