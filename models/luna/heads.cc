#include "models/luna/heads.h"

#include <algorithm>
#include <cmath>

#include "models/encoder/head_rows.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

class Heads {
 public:
  Heads(const LunaContext& context, const LunaBatch& batch, std::span<const HeadInput> inputs)
      : context_(context),
        config_(*context.config),
        weights_(*context.weights),
        batch_(batch),
        inputs_(inputs),
        outputs_(inputs.size()) {}

  std::vector<HeadOutput> Compute() {
    config_.head == LunaHead::kMaskedLm ? PredictMasks() : Classify();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const EncoderItem& item = *inputs_[i].item;
      if (!item.Wants("embedding")) continue;
      outputs_[i].embedding = PoolRows(item, inputs_[i].rows[0], config_.width);
      if (item.normalize) NormalizeVector(outputs_[i].embedding);
    }
    return std::move(outputs_);
  }

 private:
  using Vector = std::vector<float>;

  Vector Apply(const DenseLayer& layer, const HeadRows& rows, Activation activation) const {
    return ApplyHead(layer, rows, activation, *context_.pool);
  }
  Vector Apply(const DenseLayer& layer, const Vector& rows, Activation activation) const {
    return Apply(layer, RowsOf(rows, layer.in()), activation);
  }

  Vector FirstRow(const HeadInput& input, size_t d) const {
    return {input.rows[d], input.rows[d] + config_.width};
  }

  // Rows of P of document d, for its head.
  LunaBatch::ProjectedRows Projected(const HeadInput& input, size_t d) const {
    return batch_.Projected(input.first_sequence + static_cast<int>(d));
  }

  // Of the LRA heads: what stands for document d.
  Vector Document(const HeadInput& input, size_t d) const {
    switch (config_.pooling) {
      case LunaPooling::kCls:
        return FirstRow(input, d);
      case LunaPooling::kMean:
        return MeanRows(input.rows[d], input.item->sequences[d].roles, config_.width);
      case LunaPooling::kProjectedMean: {
        const LunaBatch::ProjectedRows p = Projected(input, d);
        const std::vector<uint8_t> all(static_cast<size_t>(p.count), kernels::kLocalToken);
        return MeanRows(p.rows, all, config_.width);
      }
    }
    return {};
  }

  // What enters the head's first linear that all items share.
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

  HeadRows RowsOfProjected(const LunaBatch::ProjectedRows& p) const {
    HeadRows rows;
    for (int64_t r = 0; r < p.count; ++r) rows.push_back(p.rows + r * config_.width);
    return rows;
  }

  Vector LargestProjected(const HeadInput& input) const {
    const Vector rows =
        Apply(*weights_.head_in, RowsOfProjected(Projected(input, 0)), Activation::kNone);
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
    const Vector query = Apply(*weights_.query, HeadRows{input.rows[0]}, Activation::kNone);
    const Vector keys = Apply(*weights_.key, rows, Activation::kNone);
    const Vector values = Apply(*weights_.value, rows, Activation::kNone);
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
    Vector attended = Apply(*weights_.attended, context, Activation::kNone);
    Normalise(attended);
    return attended;
  }

  // LayerNorm of every row with the head's norm.
  void Normalise(Vector& rows) const {
    const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
    const Vector zeros(static_cast<size_t>(config_.width));
    for (float* row = rows.data(); row < rows.data() + rows.size(); row += config_.width) {
      floats.residual_norm(row, nullptr, zeros.data(), weights_.head_norm.view(), config_.width,
                           nullptr);
    }
  }

  void Classify() {
    Vector values;
    for (const HeadInput& input : inputs_) {
      if (!input.item->ReadsLogits()) continue;
      const Vector own = Features(input);
      values.insert(values.end(), own.begin(), own.end());
    }
    for (const DenseLayer& layer : weights_.hidden) {
      values = Apply(layer, values, config_.hidden_activation);
    }
    if (weights_.head_dense) {
      values = Apply(*weights_.head_dense, values, config_.pooler_activation);
    }
    values = Apply(*weights_.head_out, values, Activation::kNone);
    auto next = values.begin();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].item->ReadsLogits()) continue;
      const auto end = next + weights_.head_out->out();
      outputs_[i].logits.assign(next, end);
      next = end;
    }
  }

  void PredictMasks() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const EncoderItem& item = *inputs_[i].item;
      if (!item.ReadsLogits()) continue;
      const bool all = item.Wants("logits");
      Vector hidden =
          Apply(*weights_.head_dense,
                PickRows(inputs_[i], all ? item.sequences[0].wanted : item.masks, config_.width),
                config_.activation);
      Normalise(hidden);
      outputs_[i].logits = Apply(*weights_.head_out, hidden, Activation::kNone);
    }
  }

  const LunaContext& context_;
  const LunaConfig& config_;
  const LunaWeights& weights_;
  const LunaBatch& batch_;
  const std::span<const HeadInput> inputs_;
  std::vector<HeadOutput> outputs_;
};

}  // namespace

std::vector<HeadOutput> ComputeLunaHeads(const LunaContext& context, const LunaBatch& batch,
                                         std::span<const HeadInput> inputs) {
  return Heads(context, batch, inputs).Compute();
}

int64_t LunaLogitFloats(const LunaConfig& config, const EncoderItem& item) {
  if (!item.ReadsLogits()) return 0;
  if (config.head != LunaHead::kMaskedLm) return static_cast<int64_t>(config.labels.size());
  const size_t rows = item.Wants("logits") ? item.sequences[0].wanted.size() : item.masks.size();
  return static_cast<int64_t>(rows) * config.vocab;
}

}  // namespace longview::models
