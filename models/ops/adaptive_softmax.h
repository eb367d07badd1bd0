// The probabilities of an adaptive softmax (Grave et al. 2017).
#pragma once

#include <cstdint>
#include <span>

namespace longview::models {

// log p of every word, out [V], from the scores of all words and, behind them, of the tails [V +
// k]: log p(w) = log p_head(w) before the first cut-off, else log p_head(tail of w) + log
// p_tail(w). `cutoffs` are the tails' first words.
void AdaptiveLogProbabilities(std::span<const float> scores, std::span<const int32_t> cutoffs,
                              std::span<float> out);

}  // namespace longview::models
