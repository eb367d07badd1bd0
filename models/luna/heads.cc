#include "models/luna/heads.h"

#include <algorithm>
#include <cmath>

#include "models/encoder/head_rows.h"
#include "models/encoder/heads_pass.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

class Heads {
 public:
  Heads(const LunaConfig& config, const LunaWeights& weights, const kernels::ParallelFor& pool,
        std::span<const HeadInput> inputs, ExtraOf projected)
      : config_(config), weights_(weights), projected_(projected), pass_(inputs, pool) {}

  std::vector<HeadOutput> Compute() {
    if (config_.head == LunaHead::kMaskedLm) {
      pass_.PredictMasks({&*weights_.head_dense, config_.activation, weights_.head_norm.view(),
                          &*weights_.head_out},
                         config_.width);
    } else {
      pass_.Classify([&](const HeadInput& input) { return Features(input); },
                     [&](const Vector& features) { return Classified(features); });
    }
    pass_.Embed([&](const HeadInput& input) {
      return PoolRows(*input.item, input.rows[0], config_.width);
    });
    return pass_.Take();
  }

 private:
  using Vector = std::vector<float>;

  Vector FirstRow(const HeadInput& input, size_t d) const {
    return {input.rows[d], input.rows[d] + config_.width};
  }

  // Rows of P of document d, for its head.
  ExtraRowsView Projected(const HeadInput& input, size_t d) const {
    return projected_(input.first_sequence + static_cast<int>(d));
  }

  // The vector that stands for document d in the LRA heads.
  Vector Document(const HeadInput& input, size_t d) const {
    switch (config_.pooling) {
      case LunaPooling::kCls:
        return FirstRow(input, d);
      case LunaPooling::kMean:
        return MeanRows(input.rows[d], input.item->sequences[d].roles, config_.width);
      case LunaPooling::kProjectedMean: {
        const ExtraRowsView p = Projected(input, d);
        const std::vector<uint8_t> all(static_cast<size_t>(p.count), kernels::kLocalToken);
        return MeanRows(p.rows, all, config_.width);
      }
    }
    return {};
  }

  // Input of the head's first linear that all items share.
  Vector Features(const HeadInput& input) const {
    if (config_.head == LunaHead::kSentence) return FirstRow(input, 0);
    if (config_.head == LunaHead::kProjectedMax) return LargestProjected(input);
    if (config_.head == LunaHead::kProjectedHead) return AttendedProjected(input);
    if (config_.task != EncoderHead::kPairClassification) return Document(input, 0);
    // The published code puts the second document first.
    Vector features = Document(input, 1);
    const Vector first = Document(input, 0);
    features.insert(features.end(), first.begin(), first.end());
    return features;
  }

  HeadRows RowsOfProjected(const ExtraRowsView& p) const {
    HeadRows rows;
    for (int64_t r = 0; r < p.count; ++r) rows.push_back(p.rows + r * config_.width);
    return rows;
  }

  Vector LargestProjected(const HeadInput& input) const {
    const Vector rows =
        pass_.Apply(*weights_.head_in, RowsOfProjected(Projected(input, 0)), Activation::kNone);
    const auto width = static_cast<size_t>(config_.width);
    Vector largest(rows.begin(), rows.begin() + config_.width);
    for (size_t at = 0; at < rows.size(); ++at) {
      largest[at % width] = std::max(largest[at % width], rows[at]);
    }
    return largest;
  }

  // Multi-head attention of x_0 over the rows of P, then a LayerNorm.
  Vector AttendedProjected(const HeadInput& input) const {
    const HeadRows rows = RowsOfProjected(Projected(input, 0));
    const Vector query = pass_.Apply(*weights_.query, HeadRows{input.rows[0]}, Activation::kNone);
    const Vector keys = pass_.Apply(*weights_.key, rows, Activation::kNone);
    const Vector values = pass_.Apply(*weights_.value, rows, Activation::kNone);
    const VectorKernels& vectors = ChooseVectorKernels();
    const int64_t width = config_.width, dim = width / config_.heads;
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    Vector context(static_cast<size_t>(width));
    for (int64_t head = 0; head < config_.heads; ++head) {
      Vector scores;
      for (size_t r = 0; r < rows.size(); ++r) {
        const float* key = keys.data() + static_cast<int64_t>(r) * width + head * dim;
        scores.push_back(scale * vectors.dot(query.data() + head * dim, key, dim));
      }
      const Vector shares = Softmax(scores);
      for (size_t r = 0; r < rows.size(); ++r) {
        vectors.add_scaled(context.data() + head * dim,
                           values.data() + static_cast<int64_t>(r) * width + head * dim, shares[r],
                           dim);
      }
    }
    Vector attended = pass_.Apply(*weights_.attended, context, Activation::kNone);
    NormRows(weights_.head_norm.view(), width, attended);
    return attended;
  }

  Vector Classified(Vector values) const {
    for (const DenseLayer& layer : weights_.hidden) {
      values = pass_.Apply(layer, values, config_.hidden_activation);
    }
    if (weights_.head_dense) {
      values = pass_.Apply(*weights_.head_dense, values, config_.pooler_activation);
    }
    return pass_.Apply(*weights_.head_out, values, Activation::kNone);
  }

  const LunaConfig& config_;
  const LunaWeights& weights_;
  const ExtraOf projected_;
  HeadsPass pass_;
};

}  // namespace

bool ReadsProjected(const LunaConfig& config) {
  return config.head == LunaHead::kNone || config.head == LunaHead::kProjectedMax ||
         config.head == LunaHead::kProjectedHead ||
         (config.is_lra() && config.pooling == LunaPooling::kProjectedMean);
}

std::vector<HeadOutput> ComputeLunaHeads(const LunaConfig& config, const LunaWeights& weights,
                                         const kernels::ParallelFor& pool,
                                         std::span<const HeadInput> inputs, ExtraOf projected) {
  return Heads(config, weights, pool, inputs, projected).Compute();
}

}  // namespace longview::models
