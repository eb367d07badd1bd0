#include "server/engine/cost_history.h"

#include "gtest/gtest.h"

namespace longview::server {
namespace {

TEST(CostHistoryTest, NothingIsExpectedOfTheUnknown) {
  const CostHistory history;
  EXPECT_EQ(history.Expected(1000), 0);
  EXPECT_EQ(history.PaceOf(1, absl::UnixEpoch()), 1);
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

}  // namespace
}  // namespace longview::server
