// Encoders of the Composite Slice Transformer as a family.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/cst/heads.h"
#include "models/cst/pass.h"
#include "models/encoder/families.h"
#include "models/encoder/model.h"

namespace longview::models {
namespace {

// The id that pad_mask_source `nonzero_id` masks.
constexpr int kMaskedId = 0;

EncoderFacts FactsOf(const CstConfig& config) {
  EncoderFacts facts = FactsOfText("cst", config);
  facts.types = config.types;
  facts.max_tokens = config.most_tokens;
  facts.has_pooler = config.head == CstHead::kPooled && config.pooler;
  facts.pooler_reads = RowsRead::kAll;
  facts.head_reads = RowsRead::kAll;
  facts.cls_reads = std::nullopt;
  if (config.id_zero_masks) facts.pad = kMaskedId;
  switch (config.head) {
    case CstHead::kMaskedLm:
      facts.head = EncoderHead::kMaskedLm;
      facts.head_reads = RowsRead::kFirst;
      facts.labels.clear();
      break;
    case CstHead::kMatching:
      facts.head = EncoderHead::kPairClassification;
      facts.pairs = PairForm::kSeparate;
      break;
    case CstHead::kPooled:
      facts.head = EncoderHead::kSequenceClassification;
      facts.pairs = PairForm::kJoined;
      break;
    default:
      facts.head = EncoderHead::kSequenceClassification;
  }
  return facts;
}

class Cst final : public WeighedFamily<CstConfig, CstWeights> {
 public:
  Cst(const CstConfig& config, const ModelDirectory& directory)
      : WeighedFamily(FactsOf(config), config, LoadCstWeights, directory) {}

  std::unique_ptr<EncoderPass> MakePass(Compute compute, Sequences sequences,
                                        int tile_rows) const override {
    return std::make_unique<CstPass>(config_, weights_, compute, sequences, tile_rows);
  }
  std::vector<HeadOutput> ComputeHeads(const kernels::ParallelFor& pool,
                                       std::span<const HeadInput> inputs,
                                       ExtraOf) const override {
    return ComputeCstHeads(config_, weights_, pool, inputs);
  }

  // A masked id belongs to the document, unlike padding: its place counts.
  absl::Status Place(const std::string&, EncoderSequence& sequence) const override {
    for (int t = 0; t < sequence.tokens(); ++t) {
      sequence.positions.push_back(t);
      if (config_.id_zero_masks && sequence.ids[t] == kMaskedId) {
        sequence.roles[t] = kernels::kMaskedToken;
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeCst(const ModelDirectory& directory) {
  return MakeFamily<Cst>(ReadTextConfig<ParseCstConfig>(directory), directory);
}

}  // namespace longview::models
