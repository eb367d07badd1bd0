// Addresses that are refused for a moment: how long, and how many are remembered.
#include "server/limits/shut_addresses.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace longview::server {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

class Shut : public ::testing::Test {
 protected:
  static absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

  ShutAddresses shut{absl::Seconds(1)};
};

TEST_F(Shut, OnlyTheAddressIsShutOutUntilItsTimeIsOver) {
  EXPECT_EQ(shut.Find("a", At(0)), std::nullopt);
  EXPECT_TRUE(shut.Shut("a", EndCause::kResets, At(0)));
  EXPECT_EQ(shut.Find("a", At(0)), EndCause::kResets);
  EXPECT_EQ(shut.Find("a", At(0.999)), EndCause::kResets);
  EXPECT_EQ(shut.Find("b", At(0.5)), std::nullopt);
  EXPECT_EQ(shut.Find("a", At(1)), std::nullopt);
}

TEST_F(Shut, OneThatGoesOnStaysShutOutForItsFirstCause) {
  EXPECT_TRUE(shut.Shut("a", EndCause::kFlood, At(0)));
  EXPECT_FALSE(shut.Shut("a", EndCause::kResets, At(0.9)));
  EXPECT_EQ(shut.Find("a", At(1.8)), EndCause::kFlood);
  EXPECT_EQ(shut.Find("a", At(1.9)), std::nullopt);
  EXPECT_TRUE(shut.Shut("a", EndCause::kResets, At(1.9)));
  EXPECT_EQ(shut.Find("a", At(1.9)), EndCause::kResets);
}

TEST_F(Shut, ThoseWhoseTimeIsOverAreForgotten) {
  for (int i = 0; i < 1000; ++i) {
    shut.Shut(absl::StrCat("address ", i), EndCause::kCalls, At(0.1 * i));
    EXPECT_LE(shut.size(), 10u);
  }
}

}  // namespace
}  // namespace longview::server
