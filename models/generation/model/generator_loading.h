// A family of generators as the registry describes and loads it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/generation/model/family.h"
#include "models/model.h"

namespace longview::models {

// For registry.h's `describe`: checks configuration, names and shapes, reads no weights.
absl::StatusOr<ModelInfo> DescribeGenerator(const ModelDirectory& directory, MakeGenerator make);

// The model on `device`; null: on the CPU. `notes` come before those of the type it computes in.
// INVALID_ARGUMENT also for generation options of the directory that are not served;
// RESOURCE_EXHAUSTED as ForwardDecoder::Create.
absl::StatusOr<std::unique_ptr<Model>> LoadGeneratorAt(std::unique_ptr<Device> device,
                                                       ModelDirectory directory,
                                                       const LoadOptions& options,
                                                       MakeGenerator make,
                                                       std::vector<std::string> notes = {});

}  // namespace longview::models
