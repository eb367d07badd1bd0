// The parts that all passes of one stack share.
#pragma once

#include "kernels/cache/projection_cache.h"
#include "models/dense/compute.h"
#include "models/stack/stack.h"

namespace longview::models {

// Borrowed. The caches change between steps, on the executor's thread; all else is constant.
struct StackContext {
  const StackConfig* config = nullptr;
  const StackWeights* weights = nullptr;
  Compute compute = Compute::kFp32;
  int tile_rows = 0;      // Queries of a tile of attention.
  bool few_rows = false;  // Linears have a way of their own for the few rows that decode.
  kernels::ProjectionCache* cache = nullptr;      // KV cache of the sequences' own tokens.
  kernels::ProjectionCache* documents = nullptr;  // With an encoder: keys and values of documents.
};

}  // namespace longview::models
