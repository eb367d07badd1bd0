// How the state of a Transformer-LS sequence maps onto kernels/cache.
//
//   strip 0   window: post-norm key and value per position
//   strip 1   late form of finished segments; kBlocks: of the current block
//   strip 2   kBlocks: early form of finished segments, visible once their block is over
//   sums      of the open segment: keys and values; kBlocks: hidden states too, in columns of
//             their own (the second half; their second value stays unused)
#pragma once

#include <array>

#include "kernels/cache/cache_shape.h"
#include "kernels/pool/segment_pool.h"
#include "models/transformer_ls/config.h"

namespace longview::models {

inline constexpr int kWindowStrip = 0, kLateStrip = 1, kEarlyStrip = 2;

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
  shape.strips = {kernels::WindowStrip(config.window)};
  if (config.schedule == LsSchedule::kPaper) {
    shape.strips.push_back(kernels::PageStrip(config.segment, config.rank));
  } else {
    const int block = config.block / config.segment, memory = config.memory / config.segment;
    shape.strips.push_back(kernels::PageStrip(config.segment, config.rank, block));
    shape.strips.push_back(kernels::PageStrip(config.segment, config.rank, memory + block));
  }
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
