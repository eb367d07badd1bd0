// The weights of an LED, packed for this machine. Embedding tables stay in the mapped file.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/led/config.h"
#include "models/longformer/weights.h"
#include "models/stack/stack.h"

namespace longview::models {

struct LedWeights {
  LongformerWeights encoder;
  StackWeights decoder;
  // Per decoder layer: keys and values that it makes of the document, side by side, [2H, H].
  std::vector<DenseLayer> document;

  double parameters = 0;
  double memory_bytes = 0;  // Packs, copies, and the mapped tables.
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor.
absl::StatusOr<LedWeights> LoadLedWeights(const LedConfig& config, const Checkpoint& checkpoint,
                                          const std::string& origin, Compute compute);

// The same checks on names and shapes, without reading any weights. Returns the parameters.
absl::StatusOr<double> CheckLedWeights(const LedConfig& config, const Checkpoint& checkpoint,
                                       const std::string& origin);

}  // namespace longview::models
