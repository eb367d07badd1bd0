// Luna's generating models as a family of the registry: language models and translation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/luna_decoder/config.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeLunaDecoder(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadLunaDecoder(ModelDirectory directory,
                                                       const LoadOptions& options);

// The model on `device`; null: on the host. RESOURCE_EXHAUSTED as LunaDecoder::Create.
absl::StatusOr<std::unique_ptr<Model>> LoadLunaDecoderAt(std::unique_ptr<Device> device,
                                                         ModelDirectory directory,
                                                         const LoadOptions& options,
                                                         std::vector<std::string> notes = {});

}  // namespace longview::models
