// What every run of one model shares.
#pragma once

#include "models/layers/compute_context.h"
#include "models/vil/config.h"
#include "models/vil/map_weights.h"
#include "models/vil/weights.h"

namespace longview::models {

// Borrowed, immutable but for the cache, which belongs to the thread that runs batches.
struct VilContext : ModelContext<VilConfig, VilWeights> {
  using ModelContext::ModelContext;

  VilMapCache* maps = nullptr;
  // Maps of more local tokens attend slice by slice. A slice is no shorter than that.
  int64_t band_tokens = 4096;
  // The same for long-short attention, where slices cost: landmarks are of all tokens, so keys and
  // values are projected once for them and once for the slices. All stages of an image that has
  // more tokens in its first one attend in slices, each of at least so many queries.
  int64_t long_short_tokens = 16000;
  int64_t long_short_slice = 1024;
};

}  // namespace longview::models
