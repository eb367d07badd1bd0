#include "models/quantize/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace longview::models {
namespace {

using Numbers = std::vector<double>;
using Choices = std::vector<int64_t>;
using Vector = std::vector<float>;

Detection Box(int id, float x0, float y0, float x1, float y1) {
  return {
      .id = id, .name = "", .score = 1, .x0 = x0, .y0 = y0, .x1 = x1, .y1 = y1, .mask_runs = {}};
}

TEST(AgreementTest, IsAShare) {
  EXPECT_EQ(Agreement(Choices{}, Choices{}), 1);
  EXPECT_EQ(Agreement(Choices{1, 2, 3, 4}, Choices{1, 2, 3, 5}), 0.75);
}

TEST(CosineTest, SeesTheAngleAlone) {
  EXPECT_NEAR(Cosine(Vector{1, 2}, Vector{2, 4}), 1, 1e-12);
  EXPECT_NEAR(Cosine(Vector{1, 0}, Vector{1, 1}), std::sqrt(0.5), 1e-12);
  EXPECT_EQ(Cosine(Vector{1, 0}, Vector{0, 0}), 0);
  EXPECT_EQ(Cosine(Vector{0, 0}, Vector{0, 0}), 1);
}

TEST(PercentileTest, IsOneOfTheValues) {
  Numbers values;
  for (int i = 200; i > 0; --i) values.push_back(i);
  EXPECT_EQ(Percentile(values, 0.01), 2);
  EXPECT_EQ(Percentile(Numbers{3, 1, 2}, 0.01), 1) << "of fewer than a hundred the worst";
  EXPECT_EQ(Percentile(Numbers{3, 1, 2}, 1), 3);
}

TEST(WorstRecallTest, NamesTheLabelThatLosesMost) {
  Choices exact(1000, 0), near(1000, 0);
  exact.resize(1400, 4);
  near.resize(1400, 4);
  near[0] = 4;                  // 0.999 of label 0.
  near[1000] = near[1001] = 0;  // 0.995 of label 4.
  const LabelRecall worst = WorstRecall(exact, near);
  EXPECT_EQ(worst.label, 4);
  EXPECT_NEAR(worst.recall, 0.995, 1e-12);
  EXPECT_EQ(worst.tokens, 400u);
}

TEST(WorstRecallTest, RareLabelsCountTogether) {
  Choices exact;
  for (int64_t label = 0; label < 10; ++label) exact.insert(exact.end(), 100, label);
  Choices near = exact;
  near[5] = 9;
  const LabelRecall worst = WorstRecall(exact, near);
  EXPECT_EQ(worst.label, kRareLabels);
  EXPECT_NEAR(worst.recall, 0.999, 1e-12) << "alone, label 0 would have lost a point";
}

TEST(WorstRecallTest, IsWholeWithoutTokens) { EXPECT_EQ(WorstRecall({}, {}).recall, 1); }

TEST(NdcgTest, IsOneForTheSameOrder) {
  EXPECT_EQ(Ndcg(Numbers{3, 1, 2}, Numbers{0.9, 0.1, 0.2}, 10), 1);
  EXPECT_EQ(Ndcg(Numbers{}, Numbers{}, 10), 1);
  EXPECT_EQ(Ndcg(Numbers{2, 2}, Numbers{0, 1}, 10), 1) << "no order is better than another";
}

TEST(NdcgTest, ASwapAtTheTopCostsMore) {
  const Numbers gains = {8, 4, 2, 1, 0};
  const double top = Ndcg(gains, Numbers{4, 5, 3, 2, 1}, 10);
  const double end = Ndcg(gains, Numbers{5, 4, 3, 1, 2}, 10);
  EXPECT_LT(top, end);
  EXPECT_LT(end, 1);
  const double by_hand =
      (4 + 8 / std::log2(3) + 1 + 1 / std::log2(5)) / (8 + 4 / std::log2(3) + 1 + 1 / std::log2(5));
  EXPECT_NEAR(top, by_hand, 1e-12);
}

TEST(NdcgTest, GainsBelowZeroAreCountedFromTheSmallest) {
  EXPECT_NEAR(Ndcg(Numbers{-1, -3, -2}, Numbers{0, 1, 2}, 10),
              Ndcg(Numbers{2, 0, 1}, Numbers{0, 1, 2}, 10), 1e-12);
}

TEST(NdcgTest, PlacesBeyondTheLastDoNotCount) {
  EXPECT_EQ(Ndcg(Numbers{4, 3, 2, 1}, Numbers{4, 3, 1, 2}, 2), 1);
}

TEST(MatchBoxesTest, LabelsAndPlacesMustBeAlike) {
  const std::vector<Detection> exact = {Box(1, 0, 0, 10, 10), Box(2, 20, 0, 30, 10)};
  EXPECT_EQ(MatchBoxes(exact, exact).F1(), 1);
  EXPECT_EQ(MatchBoxes({}, {}).F1(), 1);
  EXPECT_EQ(MatchBoxes(exact, {}).F1(), 0);
  const std::vector<Detection> moved = {Box(1, 0, 0, 10, 11), Box(3, 20, 0, 30, 10)};
  EXPECT_EQ(MatchBoxes(exact, moved).F1(), 0.5);
  const std::vector<Detection> half = {Box(1, 0, 0, 10, 5)}, less = {Box(1, 0, 0, 10, 4.9F)};
  EXPECT_EQ(MatchBoxes(exact, half).matched, 1u);
  EXPECT_EQ(MatchBoxes(exact, less).matched, 0u);
}

TEST(MatchBoxesTest, ABoxIsFoundOnce) {
  const std::vector<Detection> one = {Box(1, 0, 0, 10, 10)};
  const std::vector<Detection> twice = {Box(1, 0, 0, 10, 10), Box(1, 0, 0, 10, 9)};
  BoxMatches all = MatchBoxes(one, twice);
  EXPECT_EQ(all.matched, 1u);
  EXPECT_NEAR(all.F1(), 2.0 / 3, 1e-12);
  all += MatchBoxes(twice, twice);
  EXPECT_NEAR(all.F1(), 6.0 / 7, 1e-12);
}

}  // namespace
}  // namespace longview::models
