#include "models/transformer_ls_text/heads.h"

#include <algorithm>

#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"

namespace longview::models {
namespace {

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

}  // namespace

std::vector<HeadOutput> ComputeLsTextHeads(const LsTextConfig& config, const LsTextWeights& weights,
                                           const kernels::ParallelFor& pool,
                                           std::span<const HeadInput> inputs, ExtraOf class_rows) {
  return Heads(config, weights, pool, inputs, class_rows).Compute();
}

}  // namespace longview::models
