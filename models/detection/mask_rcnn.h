// Mask R-CNN's heads: proposals, boxes, masks.
#pragma once

#include <memory>

#include "models/detection/config.h"
#include "models/detection/head.h"
#include "models/detection/weights.h"

namespace longview::models {

// Borrows its arguments, which outlive it.
std::unique_ptr<DetectorHead> MakeMaskRcnnHead(const DetectorConfig& config,
                                               const DetectorWeights& weights,
                                               const HeadContext& context);

}  // namespace longview::models
