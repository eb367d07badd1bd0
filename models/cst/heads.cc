#include "models/cst/heads.h"

#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

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

}  // namespace

std::vector<HeadOutput> ComputeCstHeads(const CstConfig& config, const CstWeights& weights,
                                        const kernels::ParallelFor& pool,
                                        std::span<const HeadInput> inputs) {
  return Heads(config, weights, pool, inputs).Compute();
}

}  // namespace longview::models
