#include "server/scheduler/fair_shares.h"

#include <string>

#include "gtest/gtest.h"

namespace longview::server {
namespace {

TEST(FairSharesTest, FloorIsTheLowestOfTheAwake) {
  FairShares<std::string> shares;
  shares.Wake("a");
  shares.Wake("b");
  shares.Charge("a", 3);
  EXPECT_EQ(shares.floor(), 0);
  shares.Charge("b", 2);
  EXPECT_EQ(shares.floor(), 2);
  EXPECT_EQ(shares.TimeOf("a"), 3);
}

TEST(FairSharesTest, SleepSavesNothingUp) {
  FairShares<std::string> shares;
  shares.Wake("a");
  shares.Wake("b");
  shares.Sleep("b");
  shares.Charge("a", 10);
  shares.Wake("b");
  EXPECT_EQ(shares.TimeOf("b"), 10);
}

TEST(FairSharesTest, SleepDoesNotForgive) {
  FairShares<std::string> shares;
  shares.Wake("a");
  shares.Wake("b");
  shares.Charge("a", 10);
  shares.Sleep("a");
  shares.Charge("b", 1);
  shares.Wake("a");
  EXPECT_EQ(shares.TimeOf("a"), 10);
  EXPECT_EQ(shares.floor(), 1);
}

TEST(FairSharesTest, ForgetsWhoIsAsleepBelowTheFloor) {
  FairShares<int> shares;
  for (int i = 0; i < 1000; ++i) {
    shares.Wake(i);
    shares.Charge(i, 1);
    shares.Sleep(i);
  }
  EXPECT_EQ(shares.size(), 0u);
}

}  // namespace
}  // namespace longview::server
