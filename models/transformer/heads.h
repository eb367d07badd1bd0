// The task heads of HuggingFace's encoder classes: out(norm(act(dense(row)))) of the first row, of
// the mean, of every token or of masks, and the pooler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/encoder/family.h"
#include "models/transformer/weights.h"

namespace longview::models {

// Throws what LibTorch throws. A result's bits do not depend on the other items.
std::vector<HeadOutput> ComputeTransformerHeads(const TransformerContext& context,
                                                std::span<const HeadInput> inputs);

}  // namespace longview::models
