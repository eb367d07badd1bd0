// The weights of an LED, where it runs. Tables of the host are kept (layers/kept_table.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/decoder_stack/stack.h"
#include "models/dense/weight_format.h"
#include "models/led/config.h"
#include "models/longformer/weights.h"

namespace longview::models {

struct LedWeights {
  LongformerWeights encoder;
  StackWeights decoder;
  // Per decoder layer: keys and values that it makes of the document, side by side, [2H, H].
  std::vector<Weight> document;

  double parameters = 0;
  double memory_bytes = 0;  // Packs, copies, and kept tables.
};

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory; see
// WeightPlacer.
absl::StatusOr<LedWeights> LoadLedWeights(const LedConfig& config, const Checkpoint& checkpoint,
                                          const std::string& origin,
                                          std::optional<WeightFormat> format,
                                          DeviceStore* store = nullptr);

}  // namespace longview::models
