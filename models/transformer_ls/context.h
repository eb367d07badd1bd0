// The parts that passes of one Transformer-LS model share.
#pragma once

#include "kernels/cache/projection_cache.h"
#include "models/dense/compute.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/positions.h"
#include "models/transformer_ls/weights.h"
#include "models/transformer_ls/zero_blocks.h"

namespace longview::models {

// Borrowed. Tables and cache change between steps, on the executor's thread; all else is constant.
struct LsContext {
  const LsLmConfig* config = nullptr;
  const LsLmWeights* weights = nullptr;
  Compute compute = Compute::kFp32;
  int tile_rows = 0;      // Queries of a tile of attention.
  bool few_rows = false;  // Linears have a way of their own for the few rows that decode.
  bool on_device = false;
  RelativeTables* tables = nullptr;
  const ZeroBlocks* zero = nullptr;           // With zero memory.
  kernels::ProjectionCache* cache = nullptr;  // Null while forwards are only counted.
};

}  // namespace longview::models
