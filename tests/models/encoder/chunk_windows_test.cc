#include "models/encoder/chunk_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace longview::models {
namespace {

bool Holds(const TokenRange& window, const TokenRange& chunk) {
  return window.begin <= chunk.begin && chunk.end <= window.end;
}

TEST(ChunkWindowsTest, AChunkIsReadWhereItLiesDeepest) {
  // Windows [0, 10), [6, 16), [12, 20).
  const std::vector<TokenRange> chunks = {{0, 3}, {6, 7}, {7, 10}, {8, 9}, {14, 16}, {18, 20}};
  const WindowLayout layout = LayWindows(20, 10, 4, chunks);
  ASSERT_EQ(layout.windows.size(), 3u);
  EXPECT_EQ(layout.windows[1].begin, 6);
  EXPECT_EQ(layout.windows[2].end, 20);
  EXPECT_EQ(layout.window_of, (std::vector<int32_t>{0, 0, 1, 1, 2, 2}));
}

TEST(ChunkWindowsTest, AChunkAcrossTheEndsGetsAWindowInItsMiddle) {
  const std::vector<TokenRange> chunks = {{0, 6}, {6, 12}, {12, 18}, {18, 24}, {24, 30}};
  // Windows [0, 10), [9, 19), [18, 28), [27, 30).
  const WindowLayout layout = LayWindows(30, 10, 1, chunks);
  ASSERT_EQ(layout.window_of.size(), 5u);
  const TokenRange second = layout.windows[static_cast<size_t>(layout.window_of[1])];
  EXPECT_EQ(second.begin, 4);
  EXPECT_EQ(second.end, 14);
  // At the end of the text there is nothing behind.
  const TokenRange last = layout.windows[static_cast<size_t>(layout.window_of[4])];
  EXPECT_EQ(last.begin, 20);
  EXPECT_EQ(last.end, 30);
}

TEST(ChunkWindowsTest, EveryChunkLiesInItsWindow) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    const int32_t length = draw(1, 40), tokens = length + draw(1, 200);
    const int32_t overlap = draw(0, length / 2);
    std::vector<TokenRange> chunks(static_cast<size_t>(draw(1, 30)));
    for (TokenRange& chunk : chunks) {
      const int32_t size = draw(1, length);
      chunk.begin = draw(0, tokens - size);
      chunk.end = chunk.begin + size;
    }
    const WindowLayout layout = LayWindows(tokens, length, overlap, chunks);
    ASSERT_EQ(layout.window_of.size(), chunks.size());
    std::vector<bool> used(layout.windows.size());
    for (size_t i = 0; i < chunks.size(); ++i) {
      const auto window = static_cast<size_t>(layout.window_of[i]);
      ASSERT_LT(window, layout.windows.size());
      ASSERT_TRUE(Holds(layout.windows[window], chunks[i]));
      used[window] = true;
    }
    for (const TokenRange& window : layout.windows) {
      EXPECT_GE(window.begin, 0);
      EXPECT_LE(window.end, tokens);
      EXPECT_LE(window.end - window.begin, length);
    }
    EXPECT_EQ(std::ranges::count(used, false), 0);
  }
}

}  // namespace
}  // namespace longview::models
