// Longformer as a family of encoders: what its models are, how their tokens are placed, what heads
// read.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/encoder/pass_family.h"
#include "models/longformer/longest_document.h"
#include "models/longformer/pass.h"
#include "models/longformer/rules.h"
#include "models/transformer/heads.h"

namespace longview::models {

class Longformer final : public PassFamily<Longformer, LongformerConfig, LongformerWeights> {
 public:
  Longformer(LongformerConfig config, LongformerWeights weights, Compute compute)
      : PassFamily(std::move(config), std::move(weights), compute) {
    facts_.has_pooler = weights_.pooler.has_value();
  }
  Longformer(LongformerConfig config, LongformerWeights weights, DeviceSeat seat,
             std::unique_ptr<DeviceBlock> store)
      : PassFamily(std::move(config), std::move(weights), std::move(seat), std::move(store)) {
    facts_.has_pooler = weights_.pooler.has_value();
  }

  static absl::StatusOr<LongformerConfig> Read(const ModelDirectory& directory) {
    return ReadTextConfig<ParseLongformerConfig>(directory);
  }
  static absl::StatusOr<LongformerWeights> LoadWeights(const LongformerConfig& config,
                                                       const ModelDirectory& directory,
                                                       std::optional<Compute> compute,
                                                       DeviceStore* store) {
    return LoadLongformerWeights(config, directory.checkpoint, directory.path, compute, store);
  }
  static EncoderFacts FactsOf(const LongformerConfig& config) { return LongformerFacts(config); }
  static std::unique_ptr<EncoderPass> MakePass(const LongformerConfig& config,
                                               const LongformerWeights& weights, Compute compute,
                                               EncoderPass::Sequences sequences, int tile_rows) {
    return std::make_unique<LongformerPass>(config, weights, compute, sequences, tile_rows);
  }
  static DeviceRunBytes LongestBytes(const LongformerConfig& config, int tokens,
                                     BytesOfSequences bytes) {
    return LongestLongformerBytes(config, tokens, bytes);
  }
  static std::vector<HeadOutput> ComputeHeads(const LongformerContext& context,
                                              std::span<const HeadInput> inputs, ExtraOf) {
    TaskHeads heads = HeadsOf(*context.config, *context.weights);
    // HuggingFace: LongformerLMHead has the exact gelu whatever hidden_act says, and a norm;
    // LongformerClassificationHead has neither.
    const bool predicts = heads.head == EncoderHead::kMaskedLm;
    heads.activation = predicts ? Activation::kGelu : Activation::kTanh;
    heads.norm = predicts ? &context.weights->head_norm : nullptr;
    return ComputeTaskHeads(heads, *context.pool, inputs);
  }
  static int64_t ExtraRowsOf(const LongformerConfig&, const EncoderSequence&) { return 0; }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override {
    return PlaceTokens(config_, field, sequence);
  }
  absl::Status MarkDefaultGlobals(const std::string& field, Task task,
                                  EncoderSequence& sequence) const override {
    return MarkGlobals(config_, field, task, sequence);
  }
};

}  // namespace longview::models
