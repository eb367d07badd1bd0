// The peer of the projection cache: a model with the same weights that keeps the
// window's key and value of every position and attends to all of them. No projected pages and no
// relative positions, so it does less beside reading its cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache/projection_cache.h"
#include "models/transformer_ls/cache_layout.h"

namespace longview::bench {

inline constexpr int32_t kNextId = 1;  // Token that every sequence reads in every step.

// Used by one thread.
class FullDecoder {
 public:
  virtual ~FullDecoder() = default;

  virtual kernels::ProjectionCache& cache() = 0;
  // Every sequence reads kNextId. The logits of all, [sequences, V]. Aborts on errors.
  virtual std::vector<float> Step(std::span<kernels::CacheSequence* const> sequences) = 0;
};

// One strip with every position's row.
inline kernels::CacheShape FullShape(const models::LsLmConfig& config, kernels::DType blocks) {
  kernels::CacheShape shape = models::LsCacheShape(config, blocks);
  shape.strips = {kernels::WindowStrip(0)};
  shape.pool_columns = 0;
  return shape;
}

}  // namespace longview::bench
