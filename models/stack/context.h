// What every step of one stack shares.
#pragma once

#include "kernels/base/cpu_features.h"
#include "kernels/base/parallel.h"
#include "kernels/cache/projection_cache.h"
#include "kernels/span/executor.h"
#include "models/layers/span_rows.h"
#include "models/stack/distance_tables.h"
#include "models/stack/stack.h"

namespace longview::models {

// Borrowed. The caches change between steps, on the executor's thread; all else is constant.
struct StackContext {
  const StackConfig* config = nullptr;
  const StackWeights* weights = nullptr;
  const DistanceTables* tables = nullptr;
  kernels::ProjectionCache* cache = nullptr;      // Of the sequences' own tokens.
  kernels::ProjectionCache* documents = nullptr;  // With an encoder: keys and values of documents.
  Compute compute = Compute::kFp32;
  kernels::Isa isa = kernels::Isa::kScalar;
  const kernels::ParallelFor* pool = nullptr;

  // What cache blocks are stored as.
  kernels::DType block_type() const {
    return kernels::PanelDType(kernels::EffectiveIsa(isa, SpanType(compute)));
  }
  int tile_rows() const { return kernels::TileRows(kernels::EffectiveIsa(isa, SpanType(compute))); }
};

}  // namespace longview::models
