// Longformer as a Model: loading, costs, runs.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/longformer/run.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeLongformer(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadLongformer(ModelDirectory directory,
                                                      const LoadOptions& options);

// A run that also counts seconds by part of the work, for benchmarks. REQUIRES: `model` came from
// LoadLongformer.
std::unique_ptr<Run> BeginTimed(const Model& model, std::span<const Item* const> items,
                                EncoderTimes* times);

}  // namespace longview::models
