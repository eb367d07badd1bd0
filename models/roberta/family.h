// XLM-RoBERTa and RoBERTa: post-norm layers that all see the whole document, learned positions that
// begin behind the padding's.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/encoder/pad_positions.h"
#include "models/model_directory.h"
#include "models/transformer/family.h"

namespace longview::models {

struct RobertaReader {
  static constexpr const char* kName = "xlm_roberta";
  static absl::StatusOr<TransformerConfig> Read(const ModelDirectory& directory);
  static absl::StatusOr<TransformerWeights> LoadWeights(const TransformerConfig& config,
                                                        const ModelDirectory& directory,
                                                        std::optional<Compute> compute,
                                                        DeviceStore* store);
  static absl::Status Place(const TransformerConfig& config, const std::string& field,
                            EncoderSequence& sequence);
};

using Roberta = TransformerFamily<RobertaReader>;

}  // namespace longview::models
