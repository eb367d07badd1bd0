// Composite Slice encoders as a family: what its models are and how their tokens are placed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/cst/heads.h"
#include "models/cst/pass.h"
#include "models/encoder/pass_family.h"

namespace longview::models {

class Cst final : public PassFamily<Cst, CstConfig, CstWeights> {
 public:
  using PassFamily::PassFamily;

  static absl::StatusOr<CstConfig> Read(const ModelDirectory& directory) {
    return ReadTextConfig<ParseCstConfig>(directory);
  }
  static absl::StatusOr<CstWeights> LoadWeights(const CstConfig& config,
                                                const ModelDirectory& directory,
                                                std::optional<Compute> compute,
                                                DeviceStore* store) {
    return LoadCstWeights(config, directory.checkpoint, directory.path, compute, store);
  }
  static EncoderFacts FactsOf(const CstConfig& config);
  static std::unique_ptr<EncoderPass> MakePass(const CstConfig& config, const CstWeights& weights,
                                               Compute compute, EncoderPass::Sequences sequences,
                                               int tile_rows) {
    return std::make_unique<CstPass>(config, weights, compute, sequences, tile_rows);
  }
  static std::vector<HeadOutput> ComputeHeads(const CstContext& context,
                                              std::span<const HeadInput> inputs, ExtraOf) {
    return ComputeCstHeads(context, inputs);
  }
  static int64_t ExtraRowsOf(const CstConfig&, const EncoderSequence&) { return 0; }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;
};

}  // namespace longview::models
