#include "models/roberta/model.h"

#include <utility>

#include "models/roberta/config.h"
#include "models/roberta/family.h"
#include "models/roberta/weights.h"

namespace longview::models {

absl::StatusOr<TransformerConfig> RobertaReader::Read(const ModelDirectory& directory) {
  auto config = ParseRobertaConfig(directory.config, directory.common, directory.config_path);
  if (config.ok()) config->has_pooler = HasRobertaPooler(*config, directory.checkpoint);
  return config;
}

absl::StatusOr<TransformerWeights> RobertaReader::LoadWeights(const TransformerConfig& config,
                                                              const ModelDirectory& directory,
                                                              std::optional<Compute> compute,
                                                              DeviceStore* store) {
  return LoadRobertaWeights(config, directory.checkpoint, directory.path, compute, store);
}

absl::Status RobertaReader::Place(const TransformerConfig& config, const std::string& field,
                                  EncoderSequence& sequence) {
  return PlaceBehindPad(config.pad, config.positions, field, sequence);
}

absl::StatusOr<ModelInfo> DescribeRoberta(const ModelDirectory& directory) {
  return DescribeFamily<Roberta>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadRoberta(ModelDirectory directory,
                                                   const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, BuildFamily<Roberta>,
                     BuildPassOnDevice<Roberta>);
}

}  // namespace longview::models
