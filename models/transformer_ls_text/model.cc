// The bidirectional Transformer-LS text encoder as a family.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/encoder/families.h"
#include "models/encoder/model.h"
#include "models/transformer_ls_text/heads.h"
#include "models/transformer_ls_text/pass.h"

namespace longview::models {
namespace {

EncoderFacts FactsOf(const LsTextConfig& config) {
  EncoderFacts facts = FactsOfText("transformer_ls_text", config);
  facts.head = config.head;
  facts.max_tokens = config.positions - config.first_position();
  const bool pair = config.head == EncoderHead::kPairClassification;
  facts.pairs = pair ? PairForm::kSeparate : PairForm::kNone;
  facts.pad = kLsMaskedId;
  facts.pad_masks = true;
  const bool by_class = config.cls != LsClass::kNone;
  facts.head_reads = by_class ? RowsRead::kNone : RowsRead::kAll;
  facts.cls_reads = by_class ? std::optional(RowsRead::kNone) : std::nullopt;
  facts.default_pooling = by_class ? Pooling::kCls : Pooling::kMean;
  return facts;
}

class LsText final : public WeighedFamily<LsTextConfig, LsTextWeights> {
 public:
  LsText(const LsTextConfig& config, const ModelDirectory& directory)
      : WeighedFamily(FactsOf(config), config, LoadLsTextWeights, directory) {}

  std::unique_ptr<EncoderPass> MakePass(Compute compute, Sequences sequences,
                                        int tile_rows) const override {
    return std::make_unique<LsTextPass>(config_, weights_, compute, sequences, tile_rows);
  }
  int64_t ExtraRows(const EncoderSequence&) const override {
    return config_.cls == LsClass::kNone ? 0 : 1;
  }
  std::vector<HeadOutput> ComputeHeads(const kernels::ParallelFor& pool,
                                       std::span<const HeadInput> inputs,
                                       ExtraOf extra) const override {
    return ComputeLsTextHeads(config_, weights_, pool, inputs, extra);
  }

  absl::Status Place(const std::string&, EncoderSequence& sequence) const override {
    for (int t = 0; t < sequence.tokens(); ++t) {
      sequence.positions.push_back(t + config_.first_position());
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLsText(const ModelDirectory& directory) {
  return MakeFamily<LsText>(ReadTextConfig<ParseLsTextConfig>(directory), directory);
}

}  // namespace longview::models
