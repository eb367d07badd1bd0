// A sequence whose whole memory is one of kernels/cache.
#pragma once

#include <memory>
#include <utility>

#include "kernels/cache/projection_cache.h"
#include "models/generation/decoder/decoder.h"

namespace longview::models {

class CachedSequence : public DecoderSequence {
 public:
  explicit CachedSequence(kernels::CacheSequence cache)
      : cache_(std::move(cache)), restored_(cache_.tokens() > 0) {}

  int tokens() const override { return static_cast<int>(cache_.tokens()); }
  std::unique_ptr<DecoderSequence> Fork() const override {
    auto fork = std::make_unique<CachedSequence>(cache_.Fork());
    fork->restored_ = restored_;
    return fork;
  }
  void CachePrefix(uint64_t space) override { cache_.CachePrefix(space); }

  kernels::CacheSequence& cache() { return cache_; }
  const kernels::CacheSequence& cache() const { return cache_; }

  // Whether its tokens were found in the cache and none was read since: blocks are there, the state
  // of the open segment is empty.
  bool restored() const { return restored_; }
  void set_read() { restored_ = false; }

 private:
  kernels::CacheSequence cache_;
  bool restored_;
};

}  // namespace longview::models
