// RetinaNet's head: two towers of convolutions over all levels of the pyramid, class scores and box
// deltas per anchor. Scores are never kept: the candidates of a level are chosen panel by panel.
#pragma once

#include <memory>

#include "models/detection/config.h"
#include "models/detection/head.h"
#include "models/detection/weights.h"

namespace longview::models {

// Borrows its arguments, which outlive it.
std::unique_ptr<DetectorHead> MakeRetinaNetHead(const DetectorConfig& config,
                                                const DetectorWeights& weights,
                                                const HeadContext& context);

}  // namespace longview::models
