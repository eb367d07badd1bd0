// What every run of one model shares.
#pragma once

#include "kernels/base/cpu_features.h"
#include "kernels/base/parallel.h"
#include "models/dense/compute.h"
#include "models/long_short/map_attention.h"
#include "models/vil/config.h"
#include "models/vil/map_weights.h"
#include "models/vil/weights.h"

namespace longview::models {

// Borrowed, immutable but for the cache, which belongs to the thread that runs batches.
struct VilContext {
  const VilConfig* config = nullptr;
  const VilWeights* weights = nullptr;
  Compute compute = Compute::kFp32;
  kernels::Isa isa = kernels::Isa::kScalar;
  const kernels::ParallelFor* pool = nullptr;
  VilMapCache* maps = nullptr;
  // Maps of more local tokens attend slice by slice. A slice is no shorter than that.
  int64_t band_tokens = 4096;

  LongShortDevice device() const { return {compute, isa, pool}; }
};

}  // namespace longview::models
