// Longformer as a family of encoders.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/encoder/families.h"
#include "models/encoder/model.h"
#include "models/longformer/longest_document.h"
#include "models/longformer/pass.h"
#include "models/longformer/rules.h"
#include "models/transformer/heads.h"

namespace longview::models {
namespace {

class Longformer final : public WeighedFamily<LongformerConfig, LongformerWeights> {
 public:
  Longformer(const LongformerConfig& config, const ModelDirectory& directory)
      : WeighedFamily(LongformerFacts(config), config, LoadLongformerWeights, directory) {}

  absl::Status Load(std::optional<Compute> compute, DeviceStore* store) override {
    absl::Status status = WeighedFamily::Load(compute, store);
    facts_.has_pooler = weights_.pooler.has_value();
    return status;
  }
  std::vector<std::string> notes() const override { return weights_.notes; }

  std::unique_ptr<EncoderPass> MakePass(Compute compute, Sequences sequences,
                                        int tile_rows) const override {
    return std::make_unique<LongformerPass>(config_, weights_, compute, sequences, tile_rows);
  }
  DeviceRunBytes LongestBytes(int tokens, BytesOfSequences bytes) const override {
    return LongestLongformerBytes(config_, tokens, bytes);
  }
  std::vector<HeadOutput> ComputeHeads(const kernels::ParallelFor& pool,
                                       std::span<const HeadInput> inputs,
                                       ExtraOf) const override {
    TaskHeads heads = HeadsOf(config_, weights_);
    // HuggingFace: LongformerLMHead has the exact gelu whatever hidden_act says, and a norm;
    // LongformerClassificationHead has neither.
    const bool predicts = heads.head == EncoderHead::kMaskedLm;
    heads.activation = predicts ? Activation::kGelu : Activation::kTanh;
    heads.norm = predicts ? &weights_.head_norm : nullptr;
    return ComputeTaskHeads(heads, pool, inputs);
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override {
    return PlaceTokens(config_, field, sequence);
  }
  absl::Status MarkDefaultGlobals(const std::string& field, Task task,
                                  EncoderSequence& sequence) const override {
    return MarkGlobals(config_, field, task, sequence);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLongformer(const ModelDirectory& directory) {
  return MakeFamily<Longformer>(ReadTextConfig<ParseLongformerConfig>(directory), directory);
}

}  // namespace longview::models
