#include "models/roberta/bert.h"

#include <utility>

#include "models/roberta/config.h"
#include "models/roberta/weights.h"
#include "models/transformer/family.h"

namespace longview::models {
namespace {

using Bert = TransformerFamily<BertReader>;

}  // namespace

absl::StatusOr<TransformerConfig> BertReader::Read(const ModelDirectory& directory) {
  auto config = ParseBertConfig(directory.config, directory.common, directory.config_path);
  if (config.ok()) config->has_pooler = HasBertPooler(*config, directory.checkpoint);
  return config;
}

absl::StatusOr<TransformerWeights> BertReader::LoadWeights(const TransformerConfig& config,
                                                           const ModelDirectory& directory,
                                                           std::optional<Compute> compute,
                                                           DeviceStore* store) {
  return LoadBertWeights(config, directory.checkpoint, directory.path, compute, store);
}

absl::Status BertReader::Place(const TransformerConfig&, const std::string&,
                               EncoderSequence& sequence) {
  PlaceByIndex(sequence);
  return absl::OkStatus();
}

absl::StatusOr<ModelInfo> DescribeBert(const ModelDirectory& directory) {
  return DescribeFamily<Bert>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadBert(ModelDirectory directory,
                                                const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, BuildFamily<Bert>, BuildPassOnDevice<Bert>);
}

}  // namespace longview::models
