// Cuts the images of a stage with chunked attention into bands, and plans each band's attention.
#pragma once

#include "models/vil/stage_plan.h"

namespace longview::models {

// Fills bands and globals of a plan whose images are placed. `measure`: without biases.
void PlanChunkBands(const VilContext& context, size_t stage, bool measure, VilStagePlan& plan);

}  // namespace longview::models
