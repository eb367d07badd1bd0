#include "models/roberta/bert.h"

#include <optional>
#include <string>
#include <utility>

#include "models/roberta/config.h"
#include "models/roberta/weights.h"
#include "models/transformer/family.h"

namespace longview::models {
namespace {

struct BertReader {
  static constexpr const char* kName = "bert";

  static absl::StatusOr<TransformerConfig> Read(const ModelDirectory& directory) {
    auto config = ParseBertConfig(directory.config, directory.common, directory.config_path);
    if (config.ok()) config->has_pooler = HasBertPooler(*config, directory.checkpoint);
    return config;
  }
  static absl::StatusOr<TransformerWeights> LoadWeights(const TransformerConfig& config,
                                                        const ModelDirectory& directory,
                                                        std::optional<Compute> compute,
                                                        DeviceStore* store) {
    return LoadBertWeights(config, directory.checkpoint, directory.path, compute, store);
  }
  static absl::Status Place(const TransformerConfig&, const std::string&,
                            EncoderSequence& sequence) {
    PlaceByIndex(sequence);
    return absl::OkStatus();
  }
};

using Bert = TransformerFamily<BertReader>;

}  // namespace

absl::StatusOr<ModelInfo> DescribeBert(const ModelDirectory& directory) {
  return DescribeFamily<Bert>(directory);
}

absl::StatusOr<std::unique_ptr<Model>> LoadBert(ModelDirectory directory,
                                                const LoadOptions& options) {
  return LoadEncoder(std::move(directory), options, BuildFamily<Bert>, BuildPassOnDevice<Bert>);
}

}  // namespace longview::models
