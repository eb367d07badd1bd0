// From logits to what people read: probabilities, rankings, spans of answers, pooled vectors.
// Thread-safe: pure functions. Sums are double precision, in order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"

namespace longview::models {

std::vector<float> Softmax(std::span<const float> logits);

// By problem type: softmax, sigmoid per label, or the raw outputs (regression).
std::vector<float> Probabilities(std::span<const float> logits, ProblemType type);

// Labels with their scores, best first; regression keeps the order of ids. top_k 0 = all.
std::vector<LabelScore> RankLabels(std::span<const float> logits,
                                   std::span<const std::string> labels, ProblemType type,
                                   int top_k);

struct ScoredToken {
  int id = 0;
  float logprob = 0;
};

// The k highest logits with their log-softmax; equal logits: the lower id first.
std::vector<ScoredToken> TopTokens(std::span<const float> logits, int k);

// Mean of rows [tokens, width] with a non-zero role.
std::vector<float> MeanRows(const float* rows, std::span<const uint8_t> roles, int width);

// Divides by the Euclidean norm (at least 1e-12).
void NormalizeVector(std::span<float> vector);

// An answer of extractive question answering.
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
