// The parts that all steps of one stack share.
#pragma once

#include "kernels/cache/projection_cache.h"
#include "models/layers/compute_context.h"
#include "models/stack/distance_tables.h"
#include "models/stack/stack.h"

namespace longview::models {

// Borrowed. The caches change between steps, on the executor's thread; all else is constant.
struct StackContext : ModelContext<StackConfig, StackWeights> {
  using ModelContext::ModelContext;

  const DistanceTables* tables = nullptr;
  kernels::ProjectionCache* cache = nullptr;      // KV cache of the sequences' own tokens.
  kernels::ProjectionCache* documents = nullptr;  // With an encoder: keys and values of documents.
};

}  // namespace longview::models
