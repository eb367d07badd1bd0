// How the state of a generating Composite Slice sequence maps onto kernels/cache.
//
//   strip 0  window: keys (without the positions of relative_keys()) and values of the tokens that
//            a slice sees, L + e
//   strip 1  global keys and values, one slot per finished slice
//   strip 2  Y_g of the slice that begins at each multiple of the prefill alignment, of which
//            the last is kept: what a sequence found in the cache goes on with
//   state    of the open slice: what its tokens pool to so far, and its Y_g
#pragma once

#include <numeric>

#include "kernels/cache/projection_cache.h"
#include "kernels/pool/segment_pool.h"
#include "models/cst/config.h"

namespace longview::models {

inline constexpr int kCstWindow = 0, kCstSlices = 1, kCstSnapshots = 2;

inline int32_t CstPrefillAlignment(const CstConfig& config) {
  return std::lcm(kernels::kBlockSlots, config.slice);
}

inline kernels::CacheShape CstCacheShape(const CstConfig& config, kernels::DType blocks) {
  kernels::CacheShape shape;
  shape.layers = config.layers;
  shape.kv_heads = config.heads;
  shape.Dk = shape.Dv = config.head_dim();
  shape.dtype = blocks;
  shape.strips = {kernels::WindowStrip(config.slice + config.extension),
                  kernels::PageStrip(config.slice, 1),
                  kernels::PageStrip(CstPrefillAlignment(config), 1, 1)};
  const bool rows = config.slice_pooling == CstPooling::kLinear;
  shape.pool_columns = config.heads;
  shape.pool_widths = {(rows ? config.slice : 1) * config.head_dim(), config.head_dim()};
  return shape;
}

// The open slice's parts of a state: sums [D], linear pooling: rows [L, D]; Y_g [D]. Memory of a
// device too: addresses alone.
struct CstState {
  CstState(const kernels::ProjectionCache& cache, const kernels::CacheSequence& sequence) {
    const kernels::CacheShape& shape = cache.shape();
    const kernels::PoolState state = kernels::CarvePoolState(cache.StateAddress(sequence, 0),
                                                             shape.pool_columns, shape.pool_widths);
    slice = state.sums[0];
    global = state.sums[1];
  }

  float* slice;
  float* global;
};

}  // namespace longview::models
