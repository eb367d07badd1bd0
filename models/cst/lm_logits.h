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

// log p of every word, out [V], from the scores of all words and, behind them, of the tails [V +
// k]: log p(w) = log p_head(w) before the first cut-off, else log p_head(tail of w) + log p_tail(w)
// (Grave et al. 2017). `cutoffs` are the tails' first words.
void AdaptiveLogProbabilities(std::span<const float> scores, std::span<const int> cutoffs,
                              std::span<float> out);

}  // namespace longview::models
