// A full cache on a device: the projection cache's decode step without what makes projections,
// its products, row kernels and attention (kernels/cuda/token/decode_layers.h), recorded likewise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/cuda/device_blocks.h"
#include "kernels/cuda/recorded_steps.h"
#include "kernels/cuda/token/decode_shape.h"
#include "models/device/device_memory.h"
#include "models/transformer_ls/device_prefill.h"
#include "tests/bench/full_decoder.h"

namespace longview::bench {

class DeviceFullCache final : public FullDecoder {
 public:
  // Memory of the device for `sequences` of up to `tokens` tokens; throws DeviceError where there
  // is less. Borrows what the context names.
  DeviceFullCache(const models::DeviceLsContext& context, int sequences, int64_t tokens);
  ~DeviceFullCache() override;

  // Device memory of a cache for so many.
  static int64_t CacheBytes(const models::DeviceLsContext& context, int sequences, int64_t tokens);

  kernels::ProjectionCache& cache() override { return *cache_; }
  std::vector<float> Step(std::span<kernels::CacheSequence* const> sequences) override;

 private:
  const models::Device& device_;
  const kernels::cuda::DecodeShape shape_;
  const kernels::cuda::DecodeWeights weights_;
  kernels::cuda::DeviceBlocks blocks_;
  kernels::CacheBudget budget_;
  std::unique_ptr<kernels::ProjectionCache> cache_;
  std::unique_ptr<kernels::CacheStep> step_;
  kernels::cuda::RecordedSteps steps_;
  const models::PinnedBlock logits_;
};

}  // namespace longview::bench
