// What every run of one model shares.
#pragma once

#include "models/long_short/map_bands.h"
#include "models/vil/config.h"
#include "models/vil/weights.h"
#include "models/vision/context.h"

namespace longview::models {

struct VilContext : VisionContext<VilConfig, VilWeights> {
  using VisionContext::VisionContext;

  int tile_rows() const {
    return device_tile_rows > 0 ? device_tile_rows : VisionContext::tile_rows();
  }

  // Maps of more local tokens attend slice by slice. A slice is no shorter than that.
  int64_t band_tokens = 4096;
  LongShortCuts cuts;
  // Above 0: plans are a device's, in tiles of so many rows and with joined tables (JoinTables).
  int device_tile_rows = 0;
};

}  // namespace longview::models
