// What every step of one stack shares.
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
  kernels::ProjectionCache* cache = nullptr;      // Of the sequences' own tokens.
  kernels::ProjectionCache* documents = nullptr;  // With an encoder: keys and values of documents.
};

}  // namespace longview::models
