// The facts that all runs of one image model in stages share.
#pragma once

#include "kernels/cuda/span/launch_shape.h"
#include "models/feature_maps/map_bands.h"
#include "models/feature_maps/shape_cache.h"
#include "models/layers/compute_context.h"

namespace longview::models {

// Borrowed, immutable but for the cache, which is thread-safe.
template <class Config, class Weights>
struct VisionContext : ModelContext<Config, Weights> {
  VisionContext() = default;
  VisionContext(const Config& config, const Weights& weights, Compute compute,
                const kernels::ParallelFor& pool, ShapeCache& shapes)
      : ModelContext<Config, Weights>(config, weights, compute, pool), shapes(&shapes) {}

  // Plans are a device's from now on, in its tiles. It has room for whole maps: none is in slices.
  void PlanForDevice() {
    device_tile_rows = kernels::cuda::kDeviceTileRows;
    cuts.never = true;
  }
  bool on_device() const { return device_tile_rows > 0; }
  int tile_rows() const {
    return on_device() ? device_tile_rows : ModelContext<Config, Weights>::tile_rows();
  }

  ShapeCache* shapes = nullptr;
  LongShortCuts cuts;
  int device_tile_rows = 0;  // 0: plans are the host's.
};

}  // namespace longview::models
