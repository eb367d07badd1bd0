// How far the answers of two forms of one model are apart, as numbers.
//
// `exact` is always the form that counts as right. Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"

namespace longview::models {

// Share of places at which both chose alike; 1 where there are none. REQUIRES: equal lengths.
double Agreement(std::span<const int64_t> exact, std::span<const int64_t> near);

// Cosine of the angle between two vectors; two zero vectors have 1, a zero vector and another 0.
double Cosine(std::span<const float> a, std::span<const float> b);

// The smallest value such that at least `share` of all are not above it. REQUIRES: some values.
double Percentile(std::vector<double> values, double share);

// Labels that fewer tokens have count together: a single token would be more than half a point.
inline constexpr size_t kRareLabel = 200;
inline constexpr int64_t kRareLabels = -1;

struct LabelRecall {
  double recall = 1;  // Share of the tokens with `label` by the exact form that have it by both.
  int64_t label = kRareLabels;
  size_t tokens = 0;  // With that label.
};

// The label with the least recall; among equal ones the one of most tokens. REQUIRES: equal
// lengths, labels of at least 0.
LabelRecall WorstRecall(std::span<const int64_t> exact, std::span<const int64_t> near);

// Normalised discounted cumulative gain of the best `places` in the order of `scores`, where
// `gains` says what each is worth: 1 for the best order. Gains are counted from the smallest.
// REQUIRES: equal lengths.
double Ndcg(std::span<const double> gains, std::span<const double> scores, size_t places);

struct BoxMatches {
  size_t matched = 0, exact = 0, near = 0;

  BoxMatches& operator+=(const BoxMatches& other);
  // Twice the matched by all; 1 where there are no boxes at all.
  double F1() const;
};

// Boxes of one picture that both found: one to one, of one label, with an intersection of at least
// half their union; better scores choose first. REQUIRES: best scores first.
BoxMatches MatchBoxes(std::span<const Detection> exact, std::span<const Detection> near);

}  // namespace longview::models
