// The common work of every family's heads: all items of a batch through one classifier, words under
// masks, labels of tokens, embeddings. A family says which rows stand for a document.
//
// One thread uses it; it computes on the pool. Members throw what LibTorch throws. A result's bits
// do not depend on the other items.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/parallel.h"
#include "models/dense/layer.h"
#include "models/dense/rowwise.h"
#include "models/encoder/family.h"
#include "models/encoder/head_rows.h"

namespace longview::models {

// norm(act(dense(row))), then a linear over labels or the vocabulary.
struct PredictionHead {
  const DenseLayer* dense = nullptr;
  Activation activation = Activation::kGelu;
  NormWeights norm;
  const DenseLayer* out = nullptr;
};

class HeadsPass {
 public:
  using Vector = std::vector<float>;
  using OfItem = absl::FunctionRef<Vector(const HeadInput&)>;

  // Borrows both.
  HeadsPass(std::span<const HeadInput> inputs, const kernels::ParallelFor& pool)
      : inputs_(inputs), pool_(pool), outputs_(inputs.size()) {}

  Vector Apply(const DenseLayer& layer, const HeadRows& rows, Activation activation) const {
    return ApplyHead(layer, rows, activation, pool_);
  }
  // `rows`: [n, layer.in()].
  Vector Apply(const DenseLayer& layer, const Vector& rows, Activation activation) const {
    return Apply(layer, RowsOf(rows, layer.in()), activation);
  }

  // Logits of the items that are asked for any: their features side by side through `head`, [rows,
  // in] -> [rows, out]. An item may have several rows (choices): it gets the logits of each.
  void Classify(OfItem features, absl::FunctionRef<Vector(const Vector&)> head);

  // [wanted, labels] of each item's one sequence.
  void LabelTokens(const DenseLayer& out, int64_t width);
  void LabelTokens(const PredictionHead& head, int64_t width);

  // [wanted, V] for items that want tensor `logits`, else [masks, V].
  void PredictMasks(const PredictionHead& head, int64_t width);

  // Embeddings of items that want them by a pooling of the family; normalised where asked for.
  void Embed(OfItem pooled);

  std::vector<HeadOutput> Take() { return std::move(outputs_); }

 private:
  Vector Predict(const PredictionHead& head, const HeadRows& rows) const;

  const std::span<const HeadInput> inputs_;
  const kernels::ParallelFor& pool_;
  std::vector<HeadOutput> outputs_;
};

// Floats of logits that the head computes for the item.
int64_t LogitFloats(const EncoderFacts& facts, const EncoderItem& item);

}  // namespace longview::models
