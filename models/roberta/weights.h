// A BERT, RoBERTa or XLM-RoBERTa checkpoint by the names of transformers. Tables are read from the
// process's own pages (kept_table.h); everything else is copied or packed.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/weight_format.h"
#include "models/ops/weight_placer.h"
#include "models/transformer/weights.h"

namespace longview::models {

// Whether a base model's checkpoint has its pooler, or the head needs it.
bool HasRobertaPooler(const TransformerConfig& config, const Checkpoint& checkpoint);
bool HasBertPooler(const TransformerConfig& config, const Checkpoint& checkpoint);

// REQUIRES: `checkpoint` outlives the weights. Errors name the tensor. Without `format` names and
// shapes are checked, and the weights have sizes alone. `store`: a device's memory, for the layers;
// see WeightPlacer. Then `format` is the heads' type.
absl::StatusOr<TransformerWeights> LoadRobertaWeights(const TransformerConfig& config,
                                                      const Checkpoint& checkpoint,
                                                      const std::string& origin,
                                                      std::optional<WeightFormat> format,
                                                      DeviceStore* store);

absl::StatusOr<TransformerWeights> LoadBertWeights(const TransformerConfig& config,
                                                   const Checkpoint& checkpoint,
                                                   const std::string& origin,
                                                   std::optional<WeightFormat> format,
                                                   DeviceStore* store);

}  // namespace longview::models
