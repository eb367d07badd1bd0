// Luna's encoders as a family: what its models are, how their tokens are placed, what heads read.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/encoder/pass_family.h"
#include "models/luna/heads.h"
#include "models/luna/pass.h"

namespace longview::models {

class Luna final : public PassFamily<Luna, LunaConfig, LunaWeights> {
 public:
  using PassFamily::PassFamily;

  static absl::StatusOr<LunaConfig> Read(const ModelDirectory& directory) {
    return ReadTextConfig<ParseLunaConfig>(directory);
  }
  static absl::StatusOr<LunaWeights> LoadWeights(const LunaConfig& config,
                                                 const ModelDirectory& directory,
                                                 std::optional<Compute> compute,
                                                 DeviceStore* store) {
    return LoadLunaWeights(config, directory.checkpoint, directory.path, compute, store);
  }
  static EncoderFacts FactsOf(const LunaConfig& config);
  static std::unique_ptr<EncoderPass> MakePass(const LunaConfig& config, const LunaWeights& weights,
                                               Compute compute, EncoderPass::Sequences sequences,
                                               int tile_rows) {
    return std::make_unique<LunaPass>(config, weights, compute, sequences, tile_rows);
  }
  static std::vector<HeadOutput> ComputeHeads(const LunaContext& context,
                                              std::span<const HeadInput> inputs, ExtraOf extra) {
    return ComputeLunaHeads(context, inputs, extra);
  }
  static int64_t ExtraRowsOf(const LunaConfig& config, const EncoderSequence& sequence) {
    return ReadsProjected(config) ? ActiveRows(config, sequence) : 0;
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;

 private:
  absl::Status StripClass(const std::string& field, EncoderSequence& sequence) const;
};

}  // namespace longview::models
