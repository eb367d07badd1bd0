// Extractive question answering: the best spans under start and end logits.
// Thread-safe: a pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace longview::models {

struct TokenSpan {
  int first = 0;  // Tokens, both inclusive.
  int last = 0;
  float score = 0;        // start logit + end logit
  float probability = 0;  // Product of the two softmaxes over the context's tokens.
};

// The `top_k` spans with first <= last < first + max_tokens inside the context [begin, end), by
// falling score; equal scores: the earlier first, then the earlier last token.
// REQUIRES: 0 <= begin <= end <= size of both logits; max_tokens, top_k >= 1.
std::vector<TokenSpan> BestSpans(std::span<const float> start_logits,
                                 std::span<const float> end_logits, int begin, int end,
                                 int max_tokens, int top_k);

}  // namespace longview::models
