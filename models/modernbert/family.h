// ModernBERT (Warner et al. 2024): layers that see their whole document among layers with a window,
// rotary positions, gated MLPs.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/model_directory.h"
#include "models/transformer/family.h"

namespace longview::models {

struct ModernBertReader {
  static constexpr const char* kName = "modernbert";
  static absl::StatusOr<TransformerConfig> Read(const ModelDirectory& directory);
  static absl::StatusOr<TransformerWeights> LoadWeights(const TransformerConfig& config,
                                                        const ModelDirectory& directory,
                                                        std::optional<Compute> compute,
                                                        DeviceStore* store);
  static absl::Status Place(const TransformerConfig& config, const std::string& field,
                            EncoderSequence& sequence);
};

using ModernBert = TransformerFamily<ModernBertReader>;

}  // namespace longview::models
