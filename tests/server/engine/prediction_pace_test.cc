#include "server/engine/prediction_pace.h"

#include "gtest/gtest.h"

namespace longview::server {
namespace {

class PredictionPaceTest : public ::testing::Test {
 protected:
  // `times` batches of one item, one after the other.
  void Compute(int times, double predicted, double seconds) {
    for (int i = 0; i < times; ++i) {
      now_ += absl::Seconds(seconds);
      pace_.Computed(predicted, 1, seconds, now_);
    }
  }
  double At(double predicted) const { return pace_.At(predicted, now_); }

  PredictionPace pace_{PredictionPace::Classes::kBySize};
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(PredictionPaceTest, FollowsWhatWorkTakesInBothDirections) {
  EXPECT_EQ(At(0.1), 1);
  Compute(100, 0.1, 0.15);
  EXPECT_NEAR(At(0.1), 1.5, 0.01);
  Compute(100, 0.1, 0.05);
  EXPECT_NEAR(At(0.1), 0.5, 0.01);
  Compute(100, 0.1, 0.1);
  EXPECT_NEAR(At(0.1), 1, 0.01);
}

TEST_F(PredictionPaceTest, AWarmUpBesideOthersIsCorrectedByAHandful) {
  Compute(6, 0.786, 0.03);
  EXPECT_NEAR(0.786 * At(0.786), 0.03, 0.003);
  // Whatever its size, until more is known.
  EXPECT_NEAR(50 * At(50), 50 * 0.03 / 0.786, 0.3);
  EXPECT_NEAR(0.01 * At(0.01), 0.01 * 0.03 / 0.786, 1e-4);
}

TEST_F(PredictionPaceTest, NoiseLeavesItInTheMiddle) {
  for (int i = 0; i < 200; ++i) Compute(1, 0.01, i % 2 == 0 ? 0.008 : 0.0125);
  EXPECT_NEAR(At(0.01), 1, 0.1);
}

TEST_F(PredictionPaceTest, IsBoundedAndOneHungBatchSaysLittle) {
  Compute(20, 0.001, 0.001);
  Compute(1, 0.001, 60);
  EXPECT_LT(At(0.001), 1.05);
  Compute(1000, 1, 100);
  EXPECT_DOUBLE_EQ(At(1), 10);
  // No other size holds it up.
  PredictionPace fast(PredictionPace::Classes::kBySize);
  for (int i = 0; i < 1000; ++i) fast.Computed(1, 1, 1e-6, now_);
  EXPECT_NEAR(fast.At(1, now_), 1e-4, 1e-12);
  fast.Computed(0, 1, 0, now_);
  EXPECT_NEAR(fast.At(1, now_), 1e-4, 1e-12);
}

TEST_F(PredictionPaceTest, SlownessIsForgottenWhileNothingIsComputed) {
  Compute(10, 0.1, 0.3);
  EXPECT_GT(At(0.1), 2);
  now_ += absl::Seconds(120);
  EXPECT_NEAR(At(0.1), 1, 0.1);
  Compute(1, 0.1, 0.1);
  EXPECT_NEAR(At(0.1), 1, 0.1);
}

TEST_F(PredictionPaceTest, WhatWasProvedIsNotForgotten) {
  Compute(10, 0.5, 0.02);
  EXPECT_NEAR(At(0.5), 0.04, 0.004);
  Compute(10, 0.5, 0.06);  // Neighbours come
  EXPECT_GT(At(0.5), 0.06);
  now_ += absl::Hours(1);  // and go.
  EXPECT_NEAR(At(0.5), 0.04, 0.005);
}

TEST_F(PredictionPaceTest, PricesOfARunAndOfTokensMayDiffer) {
  Compute(10, 0.1, 0.002);
  Compute(10, 10, 10);
  EXPECT_NEAR(At(0.1), 0.02, 0.002);
  EXPECT_NEAR(At(10), 1, 0.01);
  EXPECT_GT(At(1), At(0.1));
  EXPECT_LT(At(1), At(10));
}

TEST_F(PredictionPaceTest, TheLargerPredictionStaysTheLarger) {
  Compute(10, 0.01, 0.03);
  Compute(10, 0.02, 0.002);
  Compute(10, 0.5, 0.01);
  Compute(10, 0.6, 1.5);
  double before = 0;
  for (double predicted = 1e-4; predicted < 100; predicted *= 1.1) {
    const double corrected = predicted * At(predicted);
    EXPECT_GT(corrected, before) << predicted;
    before = corrected;
  }
}

TEST_F(PredictionPaceTest, WhoAsksTwiceHearsTheSame) {
  Compute(10, 0.1, 0.3);
  const double first = At(0.1);
  now_ += absl::Seconds(10);
  EXPECT_EQ(At(0.1), first);
}

TEST_F(PredictionPaceTest, ABatchCountsByTheSizeOfItsItems) {
  for (int i = 0; i < 10; ++i) pace_.Computed(1, 100, 0.5, now_ += absl::Seconds(0.5));
  EXPECT_NEAR(At(0.01), 0.5, 0.01);
  Compute(10, 1, 1);
  EXPECT_NEAR(At(0.01), 0.5, 0.01);
  EXPECT_NEAR(At(1), 1, 0.01);
}

TEST_F(PredictionPaceTest, StepsHaveOneForAllSizes) {
  PredictionPace steps(PredictionPace::Classes::kOne);
  for (int i = 0; i < 10; ++i) steps.Computed(0.1, 1, 0.01, now_ += absl::Seconds(0.01));
  EXPECT_NEAR(steps.At(0.001, now_), 0.1, 0.01);
  EXPECT_NEAR(steps.At(100, now_), 0.1, 0.01);
}

}  // namespace
}  // namespace longview::server
