#include "models/vision/size_memo.h"

#include <gtest/gtest.h>

#include <thread>

namespace longview::models {
namespace {

TEST(SizeMemoTest, FindsOnceAndForgetsWhatWasNotAskedForLongest) {
  SizeMemo memo(2);
  int found = 0;
  const auto ask = [&](int height, int width) {
    return memo.Of({height, width}, [&] {
      ++found;
      return static_cast<size_t>(1000 * height + width);
    });
  };
  EXPECT_EQ(ask(2, 3), 2003u);
  EXPECT_EQ(ask(3, 2), 3002u);
  EXPECT_EQ(ask(2, 3), 2003u);
  EXPECT_EQ(found, 2);
  EXPECT_EQ(ask(4, 4), 4004u);  // (3, 2) goes.
  EXPECT_EQ(ask(2, 3), 2003u);
  EXPECT_EQ(found, 3);
  EXPECT_EQ(ask(3, 2), 3002u);
  EXPECT_EQ(found, 4);
}

TEST(SizeMemoTest, ThreadsGetTheirOwnSizes) {
  SizeMemo memo(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memo, t] {
      for (int i = 0; i < 2000; ++i) {
        const int side = (i * (t + 1)) % 7 + 1;
        const size_t got = memo.Of({side, side}, [&] { return static_cast<size_t>(side); });
        ASSERT_EQ(got, static_cast<size_t>(side));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace longview::models
