// The heads of Composite Slice models: classification of a document or of two, by the mean of its
// tokens; the words under masks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/cst/weights.h"
#include "models/encoder/family.h"

namespace longview::models {

// Throws what LibTorch throws. A result's bits do not depend on the other items.
std::vector<HeadOutput> ComputeCstHeads(const CstConfig& config, const CstWeights& weights,
                                        const kernels::ParallelFor& pool,
                                        std::span<const HeadInput> inputs);

}  // namespace longview::models
