#include "server/retry_delay.h"

#include <gtest/gtest.h>

#include <set>

namespace longview::server {
namespace {

const absl::Time kStart = absl::UnixEpoch();

TEST(DelaySpread, ThoseRefusedTogetherComeBackOneByOne) {
  DelaySpread spread;
  const absl::Duration delay = absl::Seconds(10);
  std::set<absl::Duration> told;
  for (int i = 0; i < 100; ++i) {
    told.insert(spread.Next("CONNECTIONS", delay, kStart + i * absl::Milliseconds(5)));
  }
  EXPECT_EQ(told.size(), 100u);
  EXPECT_EQ(*told.begin(), delay);
  EXPECT_LT(*told.rbegin(), 2 * delay);
  absl::Duration before = delay;
  for (const absl::Duration one : told) {
    EXPECT_LT(one - before, absl::Milliseconds(300)) << "a gap";
    before = one;
  }
}

TEST(DelaySpread, ARefusalAloneIsToldTheDelayItself) {
  DelaySpread spread;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(spread.Next("CONNECTIONS", absl::Seconds(2), kStart + i * absl::Seconds(1.5)),
              absl::Seconds(2));
  }
  EXPECT_EQ(spread.Next("OTHER", absl::Seconds(2), kStart + absl::Seconds(3)), absl::Seconds(2));
}

// The queue told each of them a time of its own.
TEST(DelaySpread, DelaysOfAFullQueueStay) {
  DelaySpread spread;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(spread.Next("QUEUE_FULL", absl::Seconds(2), kStart), absl::Seconds(2));
  }
}

TEST(DelaySpread, DelaysAreWholeMilliseconds) {
  DelaySpread spread;
  EXPECT_EQ(spread.Next("A", absl::Microseconds(1500), kStart), absl::Milliseconds(2));
  EXPECT_EQ(spread.Next("B", absl::ZeroDuration(), kStart), absl::Milliseconds(1));
}

}  // namespace
}  // namespace longview::server
