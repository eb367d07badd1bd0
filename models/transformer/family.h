// An encoder of plain transformer layers as a family. `Reader` brings what differs, all static:
//
//   kName                                      "modernbert"
//   Read(directory)                            the checked configuration
//   LoadWeights(config, directory, compute, store)
//   Place(config, field, sequence)             where tokens stand
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/encoder/device_model.h"
#include "models/encoder/pass_family.h"
#include "models/transformer/heads.h"
#include "models/transformer/pass.h"
#include "models/transformer/rules.h"

namespace longview::models {

template <class Reader>
class TransformerFamily final
    : public PassFamily<TransformerFamily<Reader>, TransformerConfig, TransformerWeights> {
 public:
  using Base = PassFamily<TransformerFamily, TransformerConfig, TransformerWeights>;
  using Base::Base;

  static absl::StatusOr<TransformerConfig> Read(const ModelDirectory& directory) {
    absl::StatusOr<TransformerConfig> config = Reader::Read(directory);
    if (!config.ok()) return config;
    if (absl::Status status = CheckTokenIds(directory, config->vocab); !status.ok()) return status;
    return config;
  }
  static absl::StatusOr<TransformerWeights> LoadWeights(const TransformerConfig& config,
                                                        const ModelDirectory& directory,
                                                        std::optional<Compute> compute,
                                                        DeviceStore* store) {
    return Reader::LoadWeights(config, directory, compute, store);
  }
  static EncoderFacts FactsOf(const TransformerConfig& config) {
    return FactsOfTransformer(Reader::kName, config);
  }
  static std::unique_ptr<EncoderPass> MakePass(const TransformerConfig& config,
                                               const TransformerWeights& weights, Compute compute,
                                               EncoderPass::Sequences sequences, int tile_rows) {
    return std::make_unique<TransformerPass>(config, weights, compute, sequences, tile_rows);
  }
  static std::vector<HeadOutput> ComputeHeads(const TransformerContext& context,
                                              std::span<const HeadInput> inputs, ExtraOf) {
    TaskHeads heads = HeadsOf(*context.config, *context.weights);
    heads.activation = context.config->head_activation;
    heads.pools_mean = context.config->pools_mean;
    heads.norm = context.weights->head_norm ? &*context.weights->head_norm : nullptr;
    return ComputeTaskHeads(heads, *context.pool, inputs);
  }
  static int64_t ExtraRowsOf(const TransformerConfig&, const EncoderSequence&) { return 0; }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override {
    return Reader::Place(this->config_, field, sequence);
  }
};

}  // namespace longview::models
