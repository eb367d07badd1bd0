// The frame of an encoder family: a configuration that was read and checked, weights, the context
// of its batches, and what registry.h asks of it. A family derives from WeightedFamily<Parts> and
// adds how tokens are placed and what sequences cost. `Parts` names the rest:
//
//   Config, Weights, Context, Batch              Batch(context, sequences, scratch, times)
//   static constexpr auto kParse, kLoad          Parse...Config and Load...Weights of the family
//   static EncoderFacts Facts(const Config&)
//
// Context has `config`, `weights`, `compute`, `isa` and `pool`; Config has `vocab`; Weights has
// `parameters` and `memory_bytes`.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/base/cpu_features.h"
#include "models/encoder/family.h"
#include "models/encoder/model.h"
#include "models/parallel.h"

namespace longview::models {

template <class PartsT>
class WeightedFamily : public EncoderFamily {
 public:
  using Parts = PartsT;
  using Config = typename Parts::Config;
  using Weights = typename Parts::Weights;

  WeightedFamily(Config config, Weights weights, Compute compute)
      : config_(std::move(config)), weights_(std::move(weights)), facts_(Parts::Facts(config_)) {
    context_.config = &config_;
    context_.weights = &weights_;
    context_.compute = compute;
    context_.isa = compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
    context_.pool = &pool_;
  }

  const EncoderFacts& facts() const override { return facts_; }
  Compute compute() const override { return context_.compute; }
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override { return weights_.memory_bytes; }

  std::unique_ptr<EncoderBatch> Begin(Sequences sequences, ScratchKeeper& scratch,
                                      EncoderTimes* times) const override {
    return std::make_unique<typename Parts::Batch>(context_, sequences, scratch, times);
  }

 protected:
  // Of the batch's buffers; results of panels come on top.
  size_t ScratchBytes(Sequences sequences) const {
    return Parts::Batch::ScratchBytes(context_, sequences);
  }

  const Config config_;
  const Weights weights_;
  EncoderFacts facts_;
  const TorchParallelFor pool_;
  typename Parts::Context context_;
};

// The configuration of a directory, which fits the directory's tokenizer.
template <class Parts>
absl::StatusOr<typename Parts::Config> ReadEncoderConfig(const ModelDirectory& directory) {
  absl::StatusOr<typename Parts::Config> config =
      Parts::kParse(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config;
  if (absl::Status status = CheckTokenIds(directory, config->vocab); !status.ok()) return status;
  return config;
}

// A BuildEncoder of a class derived from WeightedFamily.
template <class Family>
absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildFamily(const ModelDirectory& directory,
                                                           Compute compute) {
  auto config = ReadEncoderConfig<typename Family::Parts>(directory);
  if (!config.ok()) return config.status();
  auto weights = Family::Parts::kLoad(*config, directory.checkpoint, directory.path, compute);
  if (!weights.ok()) return weights.status();
  return std::make_unique<Family>(*std::move(config), *std::move(weights), compute);
}

// For registry.h's `describe`: checks configuration, names and shapes, reads no weights.
template <class Family>
absl::StatusOr<ModelInfo> DescribeFamily(const ModelDirectory& directory,
                                         bool own_tokenizer = false) {
  using Parts = typename Family::Parts;
  const auto config = ReadEncoderConfig<Parts>(directory);
  if (!config.ok()) return config.status();
  const auto weights = Parts::kLoad(*config, directory.checkpoint, directory.path, std::nullopt);
  if (!weights.ok()) return weights.status();
  return DescribeEncoder(directory, Parts::Facts(*config), weights->parameters, own_tokenizer);
}

}  // namespace longview::models
