// How the tokens of a batch lie in one stage, and who attends to whom there.
//
// Rows of the batch: image after image, each [globals | local tokens]. Local tokens lie chunk by
// chunk or window by window where the stage attends so, else row by row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"
#include "models/long_short/map_plan.h"
#include "models/vil/context.h"

namespace longview::models {

// The tokens of one image.
struct VilTokens {
  ImageSize map;
  int32_t row0 = 0;            // First row, the first global's.
  std::vector<int32_t> place;  // By row-major position: the row behind the globals.
  int32_t size = 0;            // Which of the stage's map sizes.
};

struct VilStagePlan {
  std::vector<VilTokens> images;
  int64_t rows = 0;                    // Of the batch, globals included.
  std::vector<int32_t> offsets = {0};  // Image i is rows [offsets[i], offsets[i + 1]).
  kernels::Plan attention;  // Every row, or with separate global projections the local ones.
  kernels::Plan globals;    // Global rows, with separate projections only.
  LongShortPlan long_short;
  // By map size of the batch; empty where nothing depends on it, and in plans made for measuring.
  std::vector<VilMapCache::Entry> maps;
  int64_t keys = 0;  // Projected keys of all images (Linformer, spatial reduction).

  // Places of local tokens, [0, local_rows), counted image after image.
  int64_t local_rows(const VilStage& stage) const {
    return rows - static_cast<int64_t>(images.size()) * stage.globals;
  }
};

// `measure`: only sizes are wanted, the cache stays untouched. Thread-safe then.
VilStagePlan PlanVilStage(const VilContext& context, size_t stage, std::span<const ImageSize> maps,
                          bool measure);

// Keys that an image's tokens attend to in a stage with projected keys; 0 elsewhere.
int64_t ProjectedKeys(const VilStage& stage, ImageSize map);

// Long-short attention of a stage.
LongShortPattern LongShortOf(const VilStage& stage);

}  // namespace longview::models
