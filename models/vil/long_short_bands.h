// Bands of long-short attention: the images of a batch together, unless one of them is large. Then
// each is a band of its own, and the large ones attend in slices.
#pragma once

#include "models/vil/stage_plan.h"

namespace longview::models {

// Fills bands and long_short of a plan whose images are placed.
void PlanLongShortBands(const VilContext& context, size_t stage, int tile_rows, bool measure,
                        VilStagePlan& plan);

}  // namespace longview::models
