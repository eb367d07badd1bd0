// The task heads of HuggingFace's encoder classes: out(norm(act(dense(row)))) of the first row, of
// the mean, of every token or of masks, and the pooler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "models/dense/layer.h"
#include "models/encoder/facts.h"
#include "models/encoder/family.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

// The parts of a model's heads. Borrowed; null where the model has none.
struct TaskHeads {
  EncoderHead head = EncoderHead::kNone;
  int64_t width = 0;
  Activation activation = Activation::kGelu;  // Behind `dense`.
  bool pools_mean = false;  // Classification reads the mean over the tokens, not the first one.
  const DenseLayer* dense = nullptr;
  const Norm* norm = nullptr;
  const DenseLayer* out = nullptr;
  const DenseLayer* pooler = nullptr;
};

// Heads of a family's configuration and weights; activation, pooling and norm are its own.
template <class Config, class Weights>
TaskHeads HeadsOf(const Config& config, const Weights& weights) {
  const auto borrow = [](const auto& layer) { return layer ? &*layer : nullptr; };
  TaskHeads heads;
  heads.head = config.head;
  heads.width = config.width;
  heads.dense = borrow(weights.head_dense);
  heads.out = borrow(weights.head_out);
  heads.pooler = borrow(weights.pooler);
  return heads;
}

// Throws what LibTorch throws. A result's bits do not depend on the other items.
std::vector<HeadOutput> ComputeTaskHeads(const TaskHeads& heads, const kernels::ParallelFor& pool,
                                         std::span<const HeadInput> inputs);

}  // namespace longview::models
