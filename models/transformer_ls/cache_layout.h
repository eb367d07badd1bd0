// How the state of a Transformer-LS sequence maps onto kernels/cache.
//
//   strips    kernels/cache/schedule_strips.h
//   sums      of the open segment: keys and values; kBlocks: hidden states too, in columns of
//             their own (the second half; their second value stays unused)
#pragma once

#include <array>

#include "kernels/cache/cache_shape.h"
#include "kernels/cache/schedule_strips.h"
#include "kernels/pool/segment_pool.h"
#include "models/transformer_ls/config.h"

namespace longview::models {

using kernels::kEarlyStrip;
using kernels::kLateStrip;
using kernels::kWindowStrip;

inline int PoolColumns(const LsLmConfig& config) {
  return config.schedule == LsSchedule::kBlocks ? 2 * config.columns() : config.columns();
}

inline std::array<int, 2> PoolWidths(const LsLmConfig& config) {
  return {config.head_dim(), config.head_dim()};
}

inline kernels::CacheShape LsCacheShape(const LsLmConfig& config, kernels::DType blocks) {
  kernels::CacheShape shape;
  shape.layers = config.layers;
  shape.kv_heads = config.heads;
  shape.Dk = shape.Dv = config.head_dim();
  shape.dtype = blocks;
  shape.strips = StripsOf(config.pattern());
  shape.pool_columns = PoolColumns(config);
  shape.pool_widths = {config.head_dim(), config.head_dim()};
  return shape;
}

// The columns of keys and values.
inline kernels::PoolState KeyValueSums(const kernels::PoolState& state) { return state; }

// The columns of hidden states; kBlocks only.
inline kernels::PoolState HiddenSums(const LsLmConfig& config, const kernels::PoolState& state) {
  const int64_t columns = config.columns();
  kernels::PoolState hidden;
  hidden.m = state.m + columns;
  hidden.s = state.s + columns;
  hidden.sums[0] = state.sums[0] + columns * config.head_dim();
  return hidden;
}

}  // namespace longview::models
