// Luna's heads: Long Range Arena classification and matching, masked LM, and the three classes of
// sequence classification of the RoBERTa-style model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/encoder/family.h"
#include "models/encoder/pass.h"
#include "models/luna/weights.h"

namespace longview::models {

// Whether the head reads rows of P.
bool ReadsProjected(const LunaConfig& config);

// `projected` gives the active rows of P where the head reads them. Throws what LibTorch throws. A
// result's bits do not depend on the other items.
std::vector<HeadOutput> ComputeLunaHeads(const LunaConfig& config, const LunaWeights& weights,
                                         const kernels::ParallelFor& pool,
                                         std::span<const HeadInput> inputs, ExtraOf projected);

}  // namespace longview::models
