// Transformer-LS of decode_definition.h on a device, with a cache in the device's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/device_blocks.h"
#include "kernels/cuda/token/decode_runner.h"
#include "kernels/cuda/token/decode_step.h"
#include "tests/kernels/cuda/support/decode_definition.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda::testing {

class DecodeModel {
 public:
  // Borrows the device. Up to 3 sequences of kMostTokens are read at a time.
  DecodeModel(TestDevice& device, NamedWeights& weights);
  ~DecodeModel();

  CacheSequence Open(std::span<const int32_t> prompt) { return cache_->Open(prompt, Reuse::kAny); }

  size_t rooms() const { return runner_.rooms(); }

  // The next token of each; their logits, [vocab] each.
  std::vector<std::vector<float>> Step(const std::vector<CacheSequence*>& sequences,
                                       const std::vector<int32_t>& ids);

 private:
  const void* Typed(const std::vector<float>& values);
  ConstantBlock Constant(const std::pair<Row, Row>& row);
  void Upload(NamedWeights& weights);

  TestDevice& device_;
  const DecodeShape shape_;
  DecodeWeights weights_;
  DeviceBlocks blocks_;
  CacheBudget budget_;
  std::unique_ptr<ProjectionCache> cache_;
  DecodeRunner runner_;
};

}  // namespace longview::kernels::cuda::testing
