// Decode steps one after the other on a device: lists through pinned memory, then a recorded step,
// one per room that was met. Memory for the largest step is taken when a model loads.
//
// One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/graph_cache.h"
#include "kernels/cuda/plugin_api.h"
#include "kernels/cuda/step_upload.h"
#include "kernels/cuda/token/decode_step.h"

namespace longview::kernels::cuda {

struct DecodeLimits {
  int sequences = 1;   // Of a step.
  int32_t tokens = 1;  // Of a sequence.
};

class DecodeRunner {
 public:
  // Borrows table and stream.
  DecodeRunner(const PluginApi& api, int32_t device, Stream* stream)
      : api_(api), device_(device), stream_(stream), upload_(api, device), graphs_(api, kGraphs) {}
  ~DecodeRunner();
  DecodeRunner(const DecodeRunner&) = delete;
  DecodeRunner& operator=(const DecodeRunner&) = delete;

  // What Reserve takes of the device's memory: for admission.
  static uint64_t MemoryBytes(const DecodeShape& shape, const CacheShape& cache,
                              const DecodeLimits& limits);
  // Once, before the first step.
  Status Reserve(const DecodeShape& shape, const CacheShape& cache, const DecodeLimits& limits);

  // Hands a step to the stream. `*logits`: see DecodeStep::Logits; the next step overwrites them.
  // REQUIRES: a step within the limits; all steps over the same weights and cache.
  Status Run(DecodeStep& step, const float** logits);

  size_t recorded() const { return graphs_.size(); }

 private:
  // Rooms grow with the power of two of a text's length, with the batch, and with how many of its
  // rows end a segment.
  static constexpr size_t kGraphs = 128;

  const PluginApi& api_;
  const int32_t device_;
  Stream* const stream_;
  StepUpload upload_;
  GraphCache graphs_;
  std::byte* buffers_ = nullptr;
  size_t buffer_bytes_ = 0;
  DecodeShape shape_;
  CacheShape cache_;
};

}  // namespace longview::kernels::cuda
