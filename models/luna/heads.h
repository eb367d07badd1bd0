// Luna's heads: Long Range Arena classification and matching, masked LM, and the three classes of
// sequence classification of the RoBERTa-style model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/encoder/family.h"
#include "models/luna/encoder.h"

namespace longview::models {

// Throws what LibTorch throws. A result's bits do not depend on the other items.
std::vector<HeadOutput> ComputeLunaHeads(const LunaContext& context, const LunaBatch& batch,
                                         std::span<const HeadInput> inputs);

// Floats of logits that the item's head computes.
int64_t LunaLogitFloats(const LunaConfig& config, const EncoderItem& item);

}  // namespace longview::models
