// A ModernBERT checkpoint by the names of transformers. Tables are read from pages of the process's
// own (kept_table.h); everything else is copied or packed.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/weight_format.h"
#include "models/ops/weight_placer.h"
#include "models/transformer/weights.h"

namespace longview::models {

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory, for the layers;
// see WeightPlacer. Then `format` is the heads' type.
absl::StatusOr<TransformerWeights> LoadModernBertWeights(const TransformerConfig& config,
                                                         const Checkpoint& checkpoint,
                                                         const std::string& origin,
                                                         std::optional<WeightFormat> format,
                                                         DeviceStore* store);

}  // namespace longview::models
