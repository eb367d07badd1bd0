// What every step of one Transformer-LS model shares.
#pragma once

#include "kernels/cache/projection_cache.h"
#include "models/layers/compute_context.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/positions.h"
#include "models/transformer_ls/weights.h"
#include "models/transformer_ls/zero_blocks.h"

namespace longview::models {

// Borrowed. Tables and cache change between steps, on the executor's thread; all else is constant.
struct LsContext : ModelContext<LsLmConfig, LsLmWeights> {
  using ModelContext::ModelContext;

  RelativeTables* tables = nullptr;
  kernels::ProjectionCache* cache = nullptr;
  const ZeroBlocks* zero = nullptr;  // Set with zero memory.
};

// The threads for small work on `rows` rows: waking them costs more than a few rows do.
inline const kernels::ParallelFor& PoolOf(const LsContext& context, int64_t rows) {
  static const kernels::SerialFor kSerial;
  constexpr int64_t kFewRows = 4;
  if (rows <= kFewRows) return kSerial;
  return *context.pool;
}

}  // namespace longview::models
