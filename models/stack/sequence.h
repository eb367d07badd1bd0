// A sequence over a stack: its blocks of the cache, and what it attends to beside.
// Belongs to the executor's thread.
#pragma once

#include <memory>
#include <utility>

#include "kernels/cache/projection_cache.h"
#include "models/generation/decoder.h"
#include "models/stack/pass_layout.h"

namespace longview::models {

class StackSequence : public DecoderSequence {
 public:
  explicit StackSequence(kernels::CacheSequence cache) : cache_(std::move(cache)) {}

  int tokens() const override { return static_cast<int>(cache_.tokens()); }
  std::unique_ptr<DecoderSequence> Fork() const override {
    return std::make_unique<StackSequence>(cache_.Fork());
  }
  void Publish() override { cache_.Publish(); }

  kernels::CacheSequence& cache() { return cache_; }
  // Null without an encoder.
  virtual const StackDocument* document() const { return nullptr; }

 protected:
  kernels::CacheSequence cache_;
};

}  // namespace longview::models
