// From hidden states to a row of logits per wanted token: a linear, or an adaptive softmax, whose
// rows are natural-log probabilities.
#pragma once

#include <span>
#include <vector>

#include "models/cst/lm_buffers.h"

namespace longview::models {

// `to` gets a row [V] per row of buffers.x; z is overwritten. Throws what LibTorch throws.
void WriteCstLogits(const CstContext& context, std::span<float* const> to,
                    const CstBuffers& buffers);

}  // namespace longview::models
