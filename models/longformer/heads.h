// The task heads on top of the encoder, all items of a batch together.
// HuggingFace: LongformerClassificationHead, LongformerLMHead, LongformerPooler and the linear
// heads of the other task classes.
#pragma once

#include <span>
#include <vector>

#include "models/encoder/family.h"
#include "models/encoder/item.h"
#include "models/longformer/weights.h"

namespace longview::models {

// Throws what LibTorch throws. A row's bits do not depend on the other items.
std::vector<HeadOutput> ComputeHeads(const LongformerContext& context,
                                     std::span<const HeadInput> inputs);

}  // namespace longview::models
