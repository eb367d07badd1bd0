// Encoders of the Composite Slice Transformer as a family.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/cst/pass.h"
#include "models/encoder/family.h"
#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"
#include "models/encoder/model.h"
#include "models/text/scores.h"

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

// The heads: classification of a document or of two, by the mean of its tokens; the words under
// masks.
class Heads {
 public:
  Heads(const CstConfig& config, const CstWeights& weights, const kernels::ParallelFor& pool,
        std::span<const HeadInput> inputs)
      : config_(config), weights_(weights), pass_(inputs, pool) {}

  std::vector<HeadOutput> Compute() {
    if (config_.head == CstHead::kMaskedLm) {
      // BERT's head: its activation is the exact gelu whatever hidden_act says.
      pass_.PredictMasks({&*weights_.head_dense, Activation::kGelu, weights_.head_norm->view(),
                          &*weights_.head_out},
                         config_.width);
    } else {
      pass_.Classify([&](const HeadInput& input) { return Features(input); },
                     [&](const Vector& features) { return Classified(features); });
    }
    pass_.Embed([&](const HeadInput& input) {
      return input.item->pooling == Pooling::kPooler
                 ? Pooled(input)
                 : PoolRows(*input.item, input.rows[0], config_.width);
    });
    return pass_.Take();
  }

 private:
  using Vector = std::vector<float>;

  // The mean over the document's tokens that are not masked; zeros where all are.
  Vector Mean(const HeadInput& input, size_t document) const {
    const EncoderSequence& sequence = input.item->sequences[document];
    return config_.mean_over_limit
               ? MeanOver(sequence, input.rows[document], config_.width, config_.most_tokens)
               : MeanRows(input.rows[document], sequence.roles, config_.width);
  }

  Vector Pooled(const HeadInput& input) const {
    return pass_.Apply(*weights_.pooler, Mean(input, 0), Activation::kTanh);
  }

  Vector Features(const HeadInput& input) const {
    if (config_.head == CstHead::kPooled && config_.pooler) return Pooled(input);
    Vector first = Mean(input, 0);
    if (config_.head != CstHead::kMatching) return first;
    const Vector second = Mean(input, 1);
    if (config_.differences) return ComparePair(first, second);
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  Vector Classified(const Vector& features) const {
    if (!weights_.head_dense) return pass_.Apply(*weights_.head_out, features, Activation::kNone);
    const Vector hidden = pass_.Apply(*weights_.head_dense, features, Activation::kRelu);
    return pass_.Apply(*weights_.head_out, hidden, Activation::kNone);
  }

  const CstConfig& config_;
  const CstWeights& weights_;
  HeadsPass pass_;
};

class Cst final : public WeighedFamily<CstConfig, CstWeights> {
 public:
  Cst(const CstConfig& config, const ModelDirectory& directory)
      : WeighedFamily(FactsOf(config), config, LoadCstWeights, directory) {}

  std::unique_ptr<EncoderPass> MakePass(Compute compute, Sequences sequences,
                                        int tile_rows) const override {
    return std::make_unique<CstPass>(config_, weights_, compute, sequences, tile_rows);
  }
  std::vector<HeadOutput> ComputeHeads(const kernels::ParallelFor& pool,
                                       std::span<const HeadInput> inputs, ExtraOf) const override {
    return Heads(config_, weights_, pool, inputs).Compute();
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
