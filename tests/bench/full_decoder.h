// The peer of the projection cache: a model with the same weights, on the host or a device, that
// keeps the window's key and value of every position and attends to all of them. No projected pages
// and no relative positions, so it does less beside reading its cache. Its forward runs the
// operations of the model's own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cache/projection_cache.h"
#include "models/generation/passes/forward_decoder.h"

namespace longview::bench {

inline constexpr int32_t kNextId = 1;  // Token that every sequence reads in every step.

// Used by one thread.
class FullDecoder {
 public:
  // Memory for `sequences` of up to `tokens` tokens where the decoder, which is borrowed, computes.
  // Throws DeviceError where there is less.
  FullDecoder(const models::ForwardDecoder& decoder, int sequences, int64_t tokens);
  ~FullDecoder();

  // Memory of a cache for so many, on a device.
  static int64_t CacheBytes(const models::ForwardDecoder& decoder, int sequences, int64_t tokens);

  kernels::ProjectionCache& cache() { return *cache_; }
  // Every sequence reads kNextId. The logits of all, [sequences, V]. Aborts on errors.
  std::vector<float> Step(std::span<models::CachedSequence* const> sequences);

 private:
  const models::ForwardDecoder& decoder_;
  std::unique_ptr<kernels::cuda::DeviceBlocks> blocks_;      // Null on the host,
  std::unique_ptr<models::DeviceTokenWorkspace> workspace_;  // and so is this.
  kernels::CacheBudget budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  models::ScratchPool scratch_;
};

}  // namespace longview::bench
