// Two families with one set of weights: XLM-RoBERTa and RoBERTa, whose positions begin behind the
// padding's, and BERT, with positions from 0, token types, and heads behind the pooler.
#include "models/encoder/family.h"
#include "models/roberta/config.h"
#include "models/roberta/weights.h"
#include "models/transformer/family.h"

namespace longview::models {

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeRoberta(const ModelDirectory& directory) {
  auto config = ParseRobertaConfig(directory.config, directory.common, directory.config_path);
  if (config.ok()) config->has_pooler = HasRobertaPooler(*config, directory.checkpoint);
  return MakeTransformer("xlm_roberta", config, LoadRobertaWeights, directory);
}

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeBert(const ModelDirectory& directory) {
  auto config = ParseBertConfig(directory.config, directory.common, directory.config_path);
  if (config.ok()) config->has_pooler = HasBertPooler(*config, directory.checkpoint);
  return MakeTransformer("bert", config, LoadBertWeights, directory);
}

}  // namespace longview::models
