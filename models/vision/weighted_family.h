// The frame of a family of image models in stages: a configuration that was read and checked,
// weights, the context of its batches, and what registry.h and detectors ask of it. A family
// derives from WeightedVision<Batch, kLoad> and adds which sizes fit and what they cost;
// VisionEntry<Family, kParse> makes models and backbones of it.
//
//   Batch     Batch(context, inputs, scratch, times) and ScratchBytes(context, sizes), where
//             Batch::Context derives from VisionContext
//   kLoad     Load...Weights(config, place, checkpoint, origin, compute)
//   kParse    Parse...Config(json, common, origin, backbone)
//
// Config has `family`, `architecture`, `image`, `stages` with a `width`, `stride(stage)`, `labels`
// and `problem_type`; Weights has `parameters` and `memory_bytes`.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "models/layers/compute_context.h"
#include "models/parallel.h"
#include "models/vision/backbone.h"
#include "models/vision/family.h"
#include "models/vision/model.h"
#include "models/vision/planned_batch.h"

namespace longview::models {

template <class Config>
VisionFacts StagedFacts(const Config& config) {
  VisionFacts facts;
  facts.family = config.family;
  facts.architecture = config.architecture;
  facts.width = config.stages.back().width;
  for (size_t s = 0; s < config.stages.size(); ++s) {
    facts.strides.push_back(config.stride(s));
    facts.channels.push_back(config.stages[s].width);
  }
  facts.labels = config.labels;
  facts.problem_type = config.problem_type;
  return facts;
}

template <class Batch, auto kLoad>
class WeightedVision : public VisionFamily {
 public:
  using Context = typename Batch::Context;
  using Config = typename Context::Config;
  using Weights = typename Context::Weights;

  WeightedVision(Config config, Weights weights, Compute compute)
      : config_(std::move(config)),
        weights_(std::move(weights)),
        facts_(StagedFacts(config_)),
        context_(config_, weights_, compute, pool_, shapes()) {}

  // `place`: of a backbone's tensors, else null. Without `compute` names and shapes are checked.
  static absl::StatusOr<Weights> Load(const Config& config, const ModelDirectory& directory,
                                      const BackbonePlace* place, std::optional<Compute> compute) {
    return kLoad(config, place, directory.checkpoint, directory.path, compute);
  }

  const VisionFacts& facts() const override { return facts_; }
  Compute compute() const override { return context_.compute; }
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override { return weights_.memory_bytes; }
  ImageSize typical_size() const override { return config_.image; }

  std::unique_ptr<VisionBatch> Begin(std::span<const VisionInput> inputs, ScratchKeeper& scratch,
                                     EncoderTimes* times) const override {
    return std::make_unique<Batch>(context_, inputs, scratch, times);
  }

 protected:
  const Config config_;
  const Weights weights_;
  const VisionFacts facts_;
  const TorchParallelFor pool_;
  Context context_;

 private:
  size_t MeasureWorkspace(ImageSize size) const override {
    return Batch::ScratchBytes(context_, {&size, 1});
  }
};

// The doors of a family whose configuration kParse reads. Errors are those of parsing and loading.
template <class Family, auto kParse>
class VisionEntry {
 public:
  // The functions of registry.h.
  static absl::StatusOr<ModelInfo> Describe(const ModelDirectory& directory) {
    const absl::StatusOr<BackboneFacts> found = Check(directory, nullptr);
    if (!found.ok()) return found.status();
    return DescribeVision(directory, found->facts, found->parameters);
  }
  static absl::StatusOr<std::unique_ptr<Model>> Load(ModelDirectory directory,
                                                     const LoadOptions& options) {
    return LoadVisionModel(std::move(directory), options, BuildModel);
  }
  // As BuildVision.
  static absl::StatusOr<std::unique_ptr<VisionFamily>> BuildModel(const ModelDirectory& directory,
                                                                  Compute compute) {
    return Build(directory, nullptr, compute);
  }

  static BackboneBuilder Backbone(std::string_view name) {
    return {name,
            [](const ModelDirectory& directory, const BackbonePlace& place) {
              return Check(directory, &place);
            },
            [](const ModelDirectory& directory, const BackbonePlace& place, Compute compute) {
              return Build(directory, &place, compute);
            },
            nullptr};
  }

 private:
  static auto Read(const ModelDirectory& directory, const BackbonePlace* place) {
    return kParse(directory.config, directory.common, directory.config_path, place != nullptr);
  }

  static absl::StatusOr<BackboneFacts> Check(const ModelDirectory& directory,
                                             const BackbonePlace* place) {
    const auto config = Read(directory, place);
    if (!config.ok()) return config.status();
    const auto weights = Family::Load(*config, directory, place, std::nullopt);
    if (!weights.ok()) return weights.status();
    return BackboneFacts{StagedFacts(*config), weights->parameters};
  }

  static absl::StatusOr<std::unique_ptr<VisionFamily>> Build(const ModelDirectory& directory,
                                                             const BackbonePlace* place,
                                                             Compute compute) {
    auto config = Read(directory, place);
    if (!config.ok()) return config.status();
    auto weights = Family::Load(*config, directory, place, compute);
    if (!weights.ok()) return weights.status();
    return std::make_unique<Family>(*std::move(config), *std::move(weights), compute);
  }
};

}  // namespace longview::models
