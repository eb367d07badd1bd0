// How the tokens of a batch lie in one stage, and who attends to whom there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"
#include "models/long_short/map_plan.h"
#include "models/vil/context.h"
#include "models/vision/map_tokens.h"

namespace longview::models {

struct VilStagePlan {
  std::vector<MapTokens> images;
  int64_t rows = 0;                    // Of the batch, globals included.
  std::vector<int32_t> offsets = {0};  // Image i is rows [offsets[i], offsets[i + 1]).
  kernels::Plan attention;  // Every row, or with separate global projections the local ones.
  kernels::Plan globals;    // Global rows, with separate projections only.
  LongShortPlan long_short;
  // By map size of the batch; empty where nothing depends on it, and in plans made for measuring.
  std::vector<VilMapCache::Entry> maps;
  int64_t keys = 0;  // Projected keys of all images (Linformer, spatial reduction).
};

// `measure`: only sizes are wanted, the cache stays untouched. Thread-safe then.
VilStagePlan PlanVilStage(const VilContext& context, size_t stage, std::span<const ImageSize> maps,
                          bool measure);

// Keys that an image's tokens attend to in a stage with projected keys; 0 elsewhere.
int64_t ProjectedKeys(const VilStage& stage, ImageSize map);

// Long-short attention of a stage.
LongShortPattern LongShortOf(const VilStage& stage);

}  // namespace longview::models
