// Cuts the images of a stage with chunked attention into bands, and plans each band's attention.
#pragma once

#include "models/vil/stage_plan.h"

namespace longview::models {

// Fills bands, attention and globals of a plan whose images are placed. `tile_rows`: of the
// executor.
void PlanChunkBands(const VilContext& context, size_t stage, int tile_rows, bool measure,
                    VilStagePlan& plan);

}  // namespace longview::models
