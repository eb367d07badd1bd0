// Transformer-LS text encoders as a family: what its models are and how their tokens are placed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/encoder/pass_family.h"
#include "models/transformer_ls_text/heads.h"
#include "models/transformer_ls_text/pass.h"

namespace longview::models {

class LsText final : public PassFamily<LsText, LsTextConfig, LsTextWeights> {
 public:
  using PassFamily::PassFamily;

  static absl::StatusOr<LsTextConfig> Read(const ModelDirectory& directory) {
    return ReadTextConfig<ParseLsTextConfig>(directory);
  }
  static absl::StatusOr<LsTextWeights> LoadWeights(const LsTextConfig& config,
                                                   const ModelDirectory& directory,
                                                   std::optional<Compute> compute,
                                                   DeviceStore* store) {
    return LoadLsTextWeights(config, directory.checkpoint, directory.path, compute, store);
  }
  static EncoderFacts FactsOf(const LsTextConfig& config);
  static std::unique_ptr<EncoderPass> MakePass(const LsTextConfig& config,
                                               const LsTextWeights& weights, Compute compute,
                                               EncoderPass::Sequences sequences, int tile_rows) {
    return std::make_unique<LsTextPass>(config, weights, compute, sequences, tile_rows);
  }
  static std::vector<HeadOutput> ComputeHeads(const LsTextContext& context,
                                              std::span<const HeadInput> inputs, ExtraOf extra) {
    return ComputeLsTextHeads(context, inputs, extra);
  }
  static int64_t ExtraRowsOf(const LsTextConfig& config, const EncoderSequence&) {
    return config.cls == LsClass::kNone ? 0 : 1;
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;
};

}  // namespace longview::models
