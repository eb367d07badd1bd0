// What the projection cache is measured against: the same weights, linears, row kernels and
// attention kernel, with the window's key and value of every position kept and attended to. No
// projected pages and no relative positions, so it does less beside reading its cache.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "models/dense/scratch.h"
#include "models/transformer_ls/decoder.h"

namespace longview::bench {

// Used by one thread. Borrows the decoder.
class FullCacheDecoder {
 public:
  // Memory for `sequences` of up to `tokens` tokens.
  FullCacheDecoder(const models::LsDecoder& decoder, int sequences, int64_t tokens);

  kernels::ProjectionCache& cache() { return *cache_; }
  const kernels::ProjectionCache& cache() const { return *cache_; }

  // Every sequence reads id 1. The logits of all, [sequences, V].
  const std::vector<float>& Step(std::span<kernels::CacheSequence* const> sequences);

 private:
  void Layer(int index, const kernels::Plan& plan);
  // layer(x) of the compute type, for all rows of the step; in products_[which].
  const std::byte* Multiply(const models::DenseLayer& layer, const std::byte* x, int which);
  void Attend(int layer, const kernels::Plan& plan);

  const models::LsContext& context_;
  const models::LsLmConfig& config_;
  const models::RowKernels& rows_;
  kernels::CacheBudget budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  kernels::CacheStep step_;
  int64_t count_ = 0;
  models::Scratch x_, input_, queries_, keys_, values_, z_, workspace_;
  models::Scratch products_[2];
  std::vector<float> logits_;
};

}  // namespace longview::bench
