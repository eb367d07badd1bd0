// How the tokens of a batch lie in one stage, and who attends to whom there.
//
// Rows of the batch: image after image, each [globals | local tokens]. Local tokens lie chunk by
// chunk where the stage attends by chunks, else row by row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/cpu_features.h"
#include "kernels/span/plan.h"
#include "models/vil/config.h"
#include "models/vil/weights.h"

namespace longview::models {

// The tokens of one image.
struct VilTokens {
  ImageSize map;
  int32_t row0 = 0;            // First row, the first global's.
  std::vector<int32_t> place;  // By row-major position: the row behind the globals.
};

struct VilStagePlan {
  std::vector<VilTokens> images;
  int64_t rows = 0;                    // Of the batch, globals included.
  std::vector<int32_t> offsets = {0};  // Image i is rows [offsets[i], offsets[i + 1]).
  kernels::Plan attention;  // Every row, or with separate global projections the local ones.
  kernels::Plan globals;    // Global rows, with separate projections only.
  // By block: [heads, entries] of biases between local tokens, where chunks need them expanded.
  std::vector<std::vector<float>> tables;
  int32_t table_entries = 0;
  int64_t keys = 0;  // Projected keys of all images (Linformer, spatial reduction).

  int64_t local_rows(const VilStage& stage) const {
    return rows - static_cast<int64_t>(images.size()) * stage.globals;
  }
};

// `expand` = false leaves the tables out: sizes only.
VilStagePlan PlanVilStage(const VilConfig& config, const VilStage& stage,
                          const VilStageWeights& weights, std::span<const ImageSize> maps,
                          kernels::Isa isa, bool expand);

// Keys that an image's tokens attend to in a stage with projected keys; 0 elsewhere.
int64_t ProjectedKeys(const VilStage& stage, ImageSize map);

}  // namespace longview::models
