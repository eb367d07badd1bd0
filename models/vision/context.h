// What every run of one image model shares.
#pragma once

#include "models/layers/compute_context.h"
#include "models/vision/shape_cache.h"

namespace longview::models {

// Borrowed, immutable but for the cache, which is thread-safe.
template <class Config, class Weights>
struct VisionContext : ModelContext<Config, Weights> {
  VisionContext() = default;
  VisionContext(const Config& config, const Weights& weights, Compute compute,
                const kernels::ParallelFor& pool, ShapeCache& shapes)
      : ModelContext<Config, Weights>(config, weights, compute, pool), shapes(&shapes) {}

  ShapeCache* shapes = nullptr;
};

}  // namespace longview::models
