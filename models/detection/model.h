// Detectors on the image families of this project as a Model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/detection/run.h"
#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/model.h"

namespace longview::models {

// The functions of registry.h. With its backbone on `device`, null: on the CPU, and its heads on
// the CPU, behind a device in fp32. RESOURCE_EXHAUSTED: the backbone does not fit.
absl::StatusOr<ModelInfo> DescribeDetector(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadDetectorAt(std::unique_ptr<Device> device,
                                                      ModelDirectory directory,
                                                      const LoadOptions& options,
                                                      std::vector<std::string> notes = {});

}  // namespace longview::models
