// Parts of a layer that the forwards of the encoder and of the language model both call with.
// Functions of their arguments.
#pragma once

#include "kernels/span/executor.h"
#include "models/cst/config.h"
#include "models/cst/weights.h"
#include "models/ops/backend.h"
#include "models/ops/feed_forward.h"

namespace longview::models {

// Zero tokens beyond a sequence's borders, as a source of attention. REQUIRES: the layer has them.
kernels::Source CstBoundary(const CstConfig& config, const CstLayer& layer);

// Keys of positions, by the key's place beside the query's slice; with relative_keys().
kernels::Table CstKeyPlaces(const CstConfig& config, const CstLayer& layer);

// The block behind attention in layer `layer`. Nothing reads the output of a pre-norm model's last
// one in T.
BlockWeights CstBlock(const CstConfig& config, const CstWeights& weights, int layer);

}  // namespace longview::models
