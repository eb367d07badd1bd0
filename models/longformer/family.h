// Longformer as a family of encoders: what its models are, how their tokens are placed, what they
// cost. On the CPU as it is; device_model.h puts the layers on a device.
#pragma once

#include <cstddef>
#include <string>

#include "models/encoder/weighted_family.h"
#include "models/longformer/cost.h"
#include "models/longformer/encoder.h"
#include "models/longformer/heads.h"
#include "models/longformer/rules.h"

namespace longview::models {

class Longformer : public WeightedFamily<EncoderRun, ParseLongformerConfig, LoadLongformerWeights,
                                         LongformerFacts> {
 public:
  Longformer(LongformerConfig config, LongformerWeights weights, Compute compute)
      : WeightedFamily(std::move(config), std::move(weights), compute) {
    facts_.has_pooler = weights_.pooler.has_value();
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override {
    return PlaceTokens(config_, field, sequence);
  }
  absl::Status MarkDefaultGlobals(const std::string& field, Task task,
                                  EncoderSequence& sequence) const override {
    return MarkGlobals(config_, field, task, sequence);
  }

  // Two results of one panel are alive at a time: the expanded one and what follows it.
  size_t WorkspaceBytes(Sequences sequences) const override {
    const int64_t widest = std::max(3 * config_.width, config_.intermediate) + config_.width;
    return ScratchBytes(sequences) +
           static_cast<size_t>(kPanelRows * widest * ElementBytes(context_.compute));
  }
  EncoderWork WorkOf(const EncoderSequence& sequence) const override {
    return models::WorkOf(config_, sequence);
  }
  int64_t LogitFloats(const EncoderItem& item) const override {
    return models::LogitFloats(config_, item);
  }
};

}  // namespace longview::models
