// The region proposal network: objectness and deltas of one anchor set per level, and the regions
// that survive.
#pragma once

#include <cstdint>
#include <vector>

#include "models/dense/rowwise.h"
#include "models/detection/candidates.h"
#include "models/detection/config.h"
#include "models/detection/pyramid.h"
#include "models/detection/weights.h"

namespace longview::models {

// Objectness and deltas of every position into outputs [rows, 5 A]: A logits, then 4 A deltas. The
// hidden map is never kept: a panel of it goes straight into the next linear.
void ScoreAnchors(const MaskRcnnWeights& weights, const PyramidLayout& layout,
                  const std::byte* levels, const PanelContext& context, float* outputs);

// Best first: the highest of each level, decoded, clipped to `size`, suppressed per level, then the
// best of all levels. `score` is a logit.
std::vector<ScoredBox> ChooseProposals(const DetectorConfig& config, const PyramidLayout& layout,
                                       const float* outputs, ImageSize size);

}  // namespace longview::models
