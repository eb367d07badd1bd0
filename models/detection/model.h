// Detectors on the image families of this project as a Model.
#pragma once

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "models/detection/run.h"
#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/model.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeDetector(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadDetector(ModelDirectory directory,
                                                    const LoadOptions& options);

// With its backbone on `device` and its heads on the host in fp32. UNIMPLEMENTED for a backbone
// that runs on the CPU only; RESOURCE_EXHAUSTED: the backbone does not fit.
absl::StatusOr<std::unique_ptr<Model>> LoadDeviceDetector(ModelDirectory directory,
                                                          const LoadOptions& options,
                                                          std::unique_ptr<Device> device);

// Model::Begin for benchmarks: adds to `times`. REQUIRES: LoadDetector made the model.
std::unique_ptr<Run> BeginTimedDetection(const Model& model, std::span<const Item* const> items,
                                         DetectionTimes& times);

}  // namespace longview::models
