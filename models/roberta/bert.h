// BERT as a family of the registry: RoBERTa's layers with positions from 0, token types, and heads
// behind the pooler.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/encoder/sequence.h"
#include "models/model.h"
#include "models/model_directory.h"
#include "models/ops/weight_placer.h"
#include "models/transformer/config.h"
#include "models/transformer/weights.h"

namespace longview::models {

struct BertReader {
  static constexpr const char* kName = "bert";
  static absl::StatusOr<TransformerConfig> Read(const ModelDirectory& directory);
  static absl::StatusOr<TransformerWeights> LoadWeights(const TransformerConfig& config,
                                                        const ModelDirectory& directory,
                                                        std::optional<Compute> compute,
                                                        DeviceStore* store);
  static absl::Status Place(const TransformerConfig& config, const std::string& field,
                            EncoderSequence& sequence);
};

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeBert(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadBert(ModelDirectory directory,
                                                const LoadOptions& options);

}  // namespace longview::models
