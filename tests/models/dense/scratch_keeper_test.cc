// Memory that a keeper holds between runs; a run never sees more than it asked for.
#include "models/dense/scratch_keeper.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace longview::models {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

void RunWith(ScratchKeeper& keeper, size_t bytes) {
  const ScratchLoan loan(keeper, bytes);
  ASSERT_NE(loan.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loan.data()) % kernels::kAlignment, 0u);
  std::memset(loan.data(), 0x5a, bytes);
}

TEST(ScratchKeeperTest, TheNextRunGetsTheSameBlock) {
  ScratchKeeper keeper;
  const std::byte* first = nullptr;
  {
    const ScratchLoan loan(keeper, 3 * kMiB);
    first = loan.data();
    EXPECT_EQ(keeper.kept_bytes(), 0u);
  }
  EXPECT_EQ(keeper.kept_bytes(), 3 * kMiB);
  const ScratchLoan loan(keeper, 2 * kMiB);
  EXPECT_EQ(loan.data(), first);
}

TEST(ScratchKeeperTest, ALargerRunReplacesTheBlock) {
  ScratchKeeper keeper;
  RunWith(keeper, kMiB);
  RunWith(keeper, 4 * kMiB);
  EXPECT_EQ(keeper.kept_bytes(), 4 * kMiB);
  RunWith(keeper, 0);
  EXPECT_EQ(keeper.kept_bytes(), 4 * kMiB);
}

TEST(ScratchKeeperTest, BlocksOverTheLimitGoBackAtOnce) {
  ScratchKeeper keeper(2 * kMiB);
  RunWith(keeper, 2 * kMiB + 1);
  EXPECT_EQ(keeper.kept_bytes(), 0u);
  RunWith(keeper, 2 * kMiB);
  EXPECT_EQ(keeper.kept_bytes(), 2 * kMiB);
}

TEST(ScratchKeeperTest, ABlockThatRunsLeaveUnusedIsGivenUp) {
  ScratchKeeper keeper(64 * kMiB, 3);
  RunWith(keeper, 8 * kMiB);
  for (int run = 0; run < 2; ++run) RunWith(keeper, kMiB);
  RunWith(keeper, 5 * kMiB);  // More than half: the count starts again.
  for (int run = 0; run < 2; ++run) RunWith(keeper, kMiB);
  EXPECT_EQ(keeper.kept_bytes(), 8 * kMiB);
  RunWith(keeper, kMiB);
  EXPECT_EQ(keeper.kept_bytes(), 0u);
  RunWith(keeper, kMiB);
  EXPECT_EQ(keeper.kept_bytes(), kMiB);
}

TEST(ScratchKeeperTest, TwoRunsAtATimeHaveTheirOwnBlocks) {
  ScratchKeeper keeper;
  RunWith(keeper, 2 * kMiB);
  std::optional<ScratchLoan> a(std::in_place, keeper, 2 * kMiB);
  std::optional<ScratchLoan> b(std::in_place, keeper, kMiB);
  EXPECT_NE(a->data(), b->data());
  a.reset();
  b.reset();
  EXPECT_EQ(keeper.kept_bytes(), 2 * kMiB);
}

}  // namespace
}  // namespace longview::models
