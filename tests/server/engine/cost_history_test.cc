#include "server/cost_history.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace longview::server {
namespace {

TEST(CostHistoryTest, NothingIsExpectedOfTheUnknown) {
  const CostHistory history;
  EXPECT_EQ(history.Expected(1000), 0);
  EXPECT_EQ(history.PaceAt(absl::Now()), 1);
}

TEST(CostHistoryTest, HalfOfWhatSoManyBytesCostIsExpected) {
  CostHistory history;
  history.Prepared(1000, 0.5);
  EXPECT_DOUBLE_EQ(history.Expected(1000), 0.25);
  EXPECT_DOUBLE_EQ(history.Expected(100), 0.025);
  history.Prepared(3000, 1.5);
  EXPECT_DOUBLE_EQ(history.Expected(2000), 0.5);
}

TEST(CostHistoryTest, NeverMoreThanHalfOfTheDearestOfLate) {
  CostHistory history;
  history.Prepared(1000, 0.5);
  EXPECT_DOUBLE_EQ(history.Expected(1000000), 0.25);
  for (int i = 0; i < 500; ++i) history.Prepared(10, 0.005);
  EXPECT_NEAR(history.Expected(1000000), 0.0025, 1e-5);
}

TEST(CostHistoryTest, FollowsAChangeOfWhatIsAsked) {
  CostHistory history;
  for (int i = 0; i < 1000; ++i) history.Prepared(1000, 1);
  for (int i = 0; i < 300; ++i) history.Prepared(1000, 0.01);
  EXPECT_NEAR(history.Expected(1000), 0.005, 0.0015);
}

class PaceTest : public ::testing::Test {
 protected:
  // `times` batches one after the other.
  void Compute(int times, double predicted, double seconds) {
    for (int i = 0; i < times; ++i) {
      now_ += absl::Seconds(seconds);
      history_.Computed(predicted, seconds, now_);
    }
  }
  double pace() const { return history_.PaceAt(now_); }

  CostHistory history_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(PaceTest, FollowsWhatWorkTakes) {
  Compute(100, 0.1, 0.15);
  EXPECT_NEAR(pace(), 1.5, 1e-3);
  Compute(100, 0.1, 0.1);
  EXPECT_NEAR(pace(), 1, 1e-3);
}

TEST_F(PaceTest, IsBoundedAndOneHungBatchSaysLittle) {
  Compute(1, 0.001, 60);
  EXPECT_NEAR(pace(), 1.01, 0.002);
  Compute(1000, 1, 100);
  EXPECT_EQ(pace(), 10);
  Compute(1000, 1, 0.1);
  EXPECT_EQ(pace(), 1);
  Compute(1, 0, 0);
  EXPECT_EQ(pace(), 1);
}

TEST_F(PaceTest, IsForgottenWhileNothingIsComputed) {
  Compute(100, 0.1, 0.3);
  EXPECT_NEAR(pace(), 3, 1e-3);
  now_ += absl::Seconds(120);
  EXPECT_NEAR(pace(), 1, 0.01);
  Compute(1, 0.1, 0.1);
  EXPECT_NEAR(pace(), 1, 0.01);
}

}  // namespace
}  // namespace longview::server
