// Decode steps of Transformer-LS, recorded one per room that was met (recorded_steps.h).
//
// One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plugin_api.h"
#include "kernels/cuda/recorded_steps.h"
#include "kernels/cuda/token/decode_step.h"

namespace longview::kernels::cuda {

struct DecodeLimits {
  int sequences = 1;   // Per step.
  int32_t tokens = 1;  // Per sequence.
};

class DecodeRunner {
 public:
  // Borrows table and stream.
  DecodeRunner(const PluginApi& api, int32_t device, Stream* stream)
      : steps_(api, device, stream) {}

  // Device memory that Reserve takes, for admission.
  static uint64_t MemoryBytes(const DecodeShape& shape, const CacheShape& cache,
                              const DecodeLimits& limits);
  // Once, before the first step.
  Status Reserve(const DecodeShape& shape, const CacheShape& cache, const DecodeLimits& limits);

  // Hands a step to the stream. `*logits`: see DecodeStep::Logits; the next step overwrites them.
  // REQUIRES: a step within the limits; all steps over the same weights and cache.
  Status Run(DecodeStep& step, const float** logits);

  // Rooms that are remembered.
  size_t rooms() const { return steps_.sizes(); }

 private:
  RecordedSteps steps_;
  DecodeShape shape_;
  CacheShape cache_;
};

}  // namespace longview::kernels::cuda
