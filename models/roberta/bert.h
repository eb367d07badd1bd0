// BERT as a family of the registry: RoBERTa's layers with positions from 0, token types, and heads
// behind the pooler.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeBert(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadBert(ModelDirectory directory,
                                                const LoadOptions& options);

}  // namespace longview::models
