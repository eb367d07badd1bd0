// An autoregressive Longformer as a stack: its layers' windows, and its weights where it runs.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/decoder_stack/stack.h"
#include "models/dense/weight_format.h"
#include "models/longformer/config.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

StackConfig LongformerStack(const LongformerConfig& config);

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory; see
// WeightPlacer.
absl::StatusOr<StackWeights> LoadLongformerLmWeights(const LongformerConfig& config,
                                                     const Checkpoint& checkpoint,
                                                     const std::string& origin,
                                                     std::optional<WeightFormat> format,
                                                     DeviceStore* store = nullptr);

}  // namespace longview::models
