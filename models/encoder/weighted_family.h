// The frame of an encoder family: a configuration that was read and checked, weights, the context
// of its batches, and what registry.h asks of it. A family derives from WeightedFamily<Batch,
// kParse, kLoad, kFacts> and adds how tokens are placed and what sequences cost.
//
//   Batch     Batch(context, sequences, scratch, times) and ScratchBytes(context, sequences), where
//             Batch::Context derives from ModelContext
//   kParse    Parse...Config(json, common, origin)
//   kLoad     Load...Weights(config, checkpoint, origin, compute)
//   kFacts    EncoderFacts of a configuration
//
// Config has `vocab`; Weights has `parameters` and `memory_bytes`.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "models/encoder/family.h"
#include "models/encoder/model.h"
#include "models/layers/compute_context.h"
#include "models/parallel.h"

namespace longview::models {

template <class Batch, auto kParse, auto kLoad, auto kFacts>
class WeightedFamily : public EncoderFamily {
 public:
  using Context = typename Batch::Context;
  using Config = typename Context::Config;
  using Weights = typename Context::Weights;

  WeightedFamily(Config config, Weights weights, Compute compute)
      : config_(std::move(config)),
        weights_(std::move(weights)),
        facts_(kFacts(config_)),
        context_(config_, weights_, compute, pool_) {}

  static absl::StatusOr<Config> Read(const ModelDirectory& directory) {
    return ReadTextConfig<kParse>(directory);
  }
  // Without `compute` names and shapes are checked.
  static absl::StatusOr<Weights> Load(const Config& config, const ModelDirectory& directory,
                                      std::optional<Compute> compute) {
    return kLoad(config, directory.checkpoint, directory.path, compute);
  }
  static EncoderFacts FactsOf(const Config& config) { return kFacts(config); }

  const EncoderFacts& facts() const override { return facts_; }
  Compute compute() const override { return context_.compute; }
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override { return weights_.memory_bytes; }

  std::unique_ptr<EncoderBatch> Begin(Sequences sequences, ScratchKeeper& scratch,
                                      EncoderTimes* times) const override {
    return std::make_unique<Batch>(context_, sequences, scratch, times);
  }

 protected:
  // Of the batch's buffers; results of panels come on top.
  size_t ScratchBytes(Sequences sequences) const {
    return Batch::ScratchBytes(context_, sequences);
  }

  const Config config_;
  const Weights weights_;
  EncoderFacts facts_;
  const TorchParallelFor pool_;
  Context context_;
};

// A BuildEncoder of a class derived from WeightedFamily.
template <class Family>
absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildFamily(const ModelDirectory& directory,
                                                           Compute compute) {
  auto config = Family::Read(directory);
  if (!config.ok()) return config.status();
  auto weights = Family::Load(*config, directory, compute);
  if (!weights.ok()) return weights.status();
  return std::make_unique<Family>(*std::move(config), *std::move(weights), compute);
}

// For registry.h's `describe`: checks configuration, names and shapes, reads no weights.
template <class Family>
absl::StatusOr<ModelInfo> DescribeFamily(const ModelDirectory& directory,
                                         bool own_tokenizer = false) {
  const auto config = Family::Read(directory);
  if (!config.ok()) return config.status();
  const auto weights = Family::Load(*config, directory, std::nullopt);
  if (!weights.ok()) return weights.status();
  return DescribeEncoder(directory, Family::FactsOf(*config), weights->parameters, own_tokenizer);
}

}  // namespace longview::models
