// One decode step over a full cache in a device's memory, from kNextId of every sequence to logits.
//
// One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/cuda/graph_cache.h"
#include "kernels/cuda/plugin_api.h"
#include "kernels/cuda/token/decode_shape.h"
#include "kernels/span/plan.h"

namespace longview::bench {

class FullCacheStep {
 public:
  // The step of sequences at these positions, which were appended to `step` in this order. Borrows
  // all else until Run.
  FullCacheStep(const kernels::cuda::DecodeShape& shape,
                const kernels::cuda::DecodeWeights& weights, const kernels::ProjectionCache& cache,
                const kernels::CacheStep& step, std::span<const int32_t> positions);

  // The sizes from which every launch and every address follows.
  kernels::cuda::GraphKey key() const { return key_; }
  size_t list_bytes() const;
  size_t buffer_bytes() const;

  void WriteLists(std::byte* host, std::byte* device);
  // REQUIRES: WriteLists; 64-byte aligned memory.
  kernels::cuda::Status Run(const kernels::cuda::PluginApi& api, kernels::cuda::Stream* stream,
                            std::byte* buffers) const;
  // Where in `buffers` it leaves the logits, [sequences, V].
  const float* Logits(std::byte* buffers) const;

 private:
  struct Lists;
  struct Buffers;
  Lists CarveLists(std::byte* memory, size_t* bytes) const;
  Buffers CarveBuffers(std::byte* memory, size_t* bytes) const;

  const kernels::cuda::DecodeShape& shape_;
  const kernels::cuda::DecodeWeights& weights_;
  const kernels::ProjectionCache& cache_;
  const kernels::CacheStep& step_;
  const kernels::Plan plan_;
  const kernels::cuda::GraphKey key_;
  const int32_t sequences_;
  std::byte* lists_ = nullptr;  // On the device.
};

}  // namespace longview::bench
