// The bidirectional Transformer-LS text encoder as a family.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/encoder/family.h"
#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"
#include "models/encoder/model.h"
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

// The heads of the Long Range Arena tasks: one document, or two compared by
// [z0, z1, z0 * z1, z0 - z1], through one hidden layer with ReLU.
class Heads {
 public:
  Heads(const LsTextConfig& config, const LsTextWeights& weights, const kernels::ParallelFor& pool,
        std::span<const HeadInput> inputs, ExtraOf class_rows)
      : config_(config), weights_(weights), class_rows_(class_rows), pass_(inputs, pool) {}

  std::vector<HeadOutput> Compute() {
    pass_.Classify([&](const HeadInput& input) { return Features(input); },
                   [&](const Vector& features) {
                     const Vector hidden =
                         pass_.Apply(*weights_.head_hidden, features, Activation::kRelu);
                     return pass_.Apply(*weights_.head_out, hidden, Activation::kNone);
                   });
    pass_.Embed([&](const HeadInput& input) { return Embedding(input); });
    return pass_.Take();
  }

 private:
  using Vector = std::vector<float>;

  // The vector that stands for document `d` of the item.
  Vector Document(const HeadInput& input, size_t d) const {
    if (config_.cls == LsClass::kNone) return Mean(input.item->sequences[d], input.rows[d]);
    const float* row = class_rows_(input.first_sequence + static_cast<int>(d)).rows;
    return {row, row + config_.width};
  }

  // Masked tokens add nothing but count, up to the last token that is not masked: the mean of the
  // published code on the document without padding, or on its padded data files.
  Vector Mean(const EncoderSequence& sequence, const float* rows) const {
    const auto last =
        std::find(sequence.roles.rbegin(), sequence.roles.rend(), kernels::kLocalToken);
    const auto length = static_cast<double>(sequence.roles.rend() - last);
    return MeanOver(sequence, rows, config_.width,
                    config_.mean_over_limit ? config_.positions : std::max(length, 1.0));
  }

  Vector Embedding(const HeadInput& input) const {
    const bool by_class = config_.cls != LsClass::kNone;
    if (by_class && input.item->pooling == Pooling::kMean) {
      return PoolRows(*input.item, input.rows[0], config_.width);
    }
    return Document(input, 0);
  }

  Vector Features(const HeadInput& input) const {
    const bool pair = config_.head == EncoderHead::kPairClassification;
    return pair ? ComparePair(Document(input, 0), Document(input, 1)) : Document(input, 0);
  }

  const LsTextConfig& config_;
  const LsTextWeights& weights_;
  const ExtraOf class_rows_;
  HeadsPass pass_;
};

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
    return Heads(config_, weights_, pool, inputs, extra).Compute();
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
