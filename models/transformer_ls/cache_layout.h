// How the state of a Transformer-LS sequence maps onto kernels/cache.
//
//   strips    kernels/cache/schedule_strips.h
//   sums      of the open segment: keys and values; kBlocks: hidden states too, in columns of
//             their own (the second half; their second value stays unused)
#pragma once

#include "kernels/cache/cache_shape.h"
#include "kernels/cache/schedule_strips.h"
#include "models/transformer_ls/config.h"

namespace longview::models {

inline kernels::CacheShape LsCacheShape(const LsLmConfig& config, kernels::DType blocks) {
  kernels::CacheShape shape;
  shape.layers = config.layers;
  shape.kv_heads = config.heads;
  shape.Dk = shape.Dv = config.head_dim();
  shape.dtype = blocks;
  shape.strips = StripsOf(config.pattern());
  shape.pool_columns = (config.early() ? 2 : 1) * config.columns();
  shape.pool_widths = {config.head_dim(), config.head_dim()};
  return shape;
}

}  // namespace longview::models
