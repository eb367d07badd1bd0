#include "models/modernbert/model.h"

#include <utility>

#include "models/modernbert/config.h"
#include "models/modernbert/family.h"
#include "models/modernbert/weights.h"

namespace longview::models {

absl::StatusOr<TransformerConfig> ModernBertReader::Read(const ModelDirectory& directory) {
  return ParseModernBertConfig(directory.config, directory.common, directory.config_path,
                               directory.serving.max_tokens);
}

absl::StatusOr<TransformerWeights> ModernBertReader::LoadWeights(const TransformerConfig& config,
                                                                 const ModelDirectory& directory,
                                                                 std::optional<Compute> compute,
                                                                 DeviceStore* store) {
  return LoadModernBertWeights(config, directory.checkpoint, directory.path, compute, store);
}

absl::Status ModernBertReader::Place(const TransformerConfig&, const std::string&,
                                     EncoderSequence& sequence) {
  PlaceByIndex(sequence);
  return absl::OkStatus();
}

absl::StatusOr<ModelInfo> DescribeModernBert(const ModelDirectory& directory) {
  return DescribeFamily<ModernBert>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadModernBert(ModelDirectory directory,
                                                      const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, BuildFamily<ModernBert>,
                     BuildPassOnDevice<ModernBert>);
}

}  // namespace longview::models
