// An autoregressive Longformer as a stack: its layers' windows, and its weights packed for this
// machine.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/longformer/config.h"
#include "models/stack/stack.h"

namespace longview::models {

StackConfig LongformerStack(const LongformerConfig& config);

struct LongformerLmWeights {
  StackWeights stack;
  double parameters = 0;
  double memory_bytes = 0;  // Packs, copies, and the mapped tables.
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `compute` names and
// shapes are checked, nothing is read.
absl::StatusOr<LongformerLmWeights> LoadLongformerLmWeights(const LongformerConfig& config,
                                                            const Checkpoint& checkpoint,
                                                            const std::string& origin,
                                                            std::optional<Compute> compute);

}  // namespace longview::models
