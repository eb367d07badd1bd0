// A full cache on the CPU: the decoder's weights, linears, row kernels and attention kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "models/dense/scratch.h"
#include "models/transformer_ls/decoder.h"
#include "tests/bench/full_decoder.h"

namespace longview::bench {

// Used by one thread. Borrows the decoder.
class FullCacheDecoder final : public FullDecoder {
 public:
  // Memory for `sequences` of up to `tokens` tokens.
  FullCacheDecoder(const models::LsDecoder& decoder, int sequences, int64_t tokens);

  kernels::ProjectionCache& cache() override { return *cache_; }
  std::vector<float> Step(std::span<kernels::CacheSequence* const> sequences) override;

 private:
  void Layer(int index, const kernels::Plan& plan);
  // layer(x) of the compute type, for all rows of the step; in products_[which].
  const std::byte* Multiply(const models::DenseLayer& layer, const std::byte* x, int which);
  void Attend(int layer, const kernels::Plan& plan);

  const models::LsContext& context_;
  const models::LsLmConfig& config_;
  const models::RowKernels& rows_;
  const kernels::CacheShape shape_;
  kernels::CacheBudget budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  kernels::CacheStep step_;
  int64_t count_ = 0;
  models::Scratch x_, input_, queries_, keys_, values_, z_, workspace_;
  models::Scratch products_[2];
  std::vector<float> logits_;
};

}  // namespace longview::bench
