// Memory that a pool holds between runs; a run never sees more than it asked for.
#include "models/dense/scratch_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace longview::models {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

void RunWith(ScratchPool& pool, size_t bytes) {
  const ScratchLease lease(pool, bytes);
  ASSERT_NE(lease.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(lease.data()) % kernels::kAlignment, 0u);
  std::memset(lease.data(), 0x5a, bytes);
}

TEST(ScratchPoolTest, TheNextRunGetsTheSameBlock) {
  ScratchPool pool;
  const std::byte* first = nullptr;
  {
    const ScratchLease lease(pool, 3 * kMiB);
    first = lease.data();
    EXPECT_EQ(pool.kept_bytes(), 0u);
  }
  EXPECT_EQ(pool.kept_bytes(), 3 * kMiB);
  const ScratchLease lease(pool, 2 * kMiB);
  EXPECT_EQ(lease.data(), first);
}

TEST(ScratchPoolTest, ALargerRunReplacesTheBlock) {
  ScratchPool pool;
  RunWith(pool, kMiB);
  RunWith(pool, 4 * kMiB);
  EXPECT_EQ(pool.kept_bytes(), 4 * kMiB);
  RunWith(pool, 0);
  EXPECT_EQ(pool.kept_bytes(), 4 * kMiB);
}

TEST(ScratchPoolTest, BlocksOverTheLimitGoBackAtOnce) {
  ScratchPool pool(2 * kMiB);
  RunWith(pool, 2 * kMiB + 1);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  RunWith(pool, 2 * kMiB);
  EXPECT_EQ(pool.kept_bytes(), 2 * kMiB);
}

TEST(ScratchPoolTest, ABlockThatRunsLeaveUnusedIsGivenUp) {
  ScratchPool pool(64 * kMiB, 3);
  RunWith(pool, 8 * kMiB);
  for (int run = 0; run < 2; ++run) RunWith(pool, kMiB);
  RunWith(pool, 5 * kMiB);  // More than half: the count starts again.
  for (int run = 0; run < 2; ++run) RunWith(pool, kMiB);
  EXPECT_EQ(pool.kept_bytes(), 8 * kMiB);
  RunWith(pool, kMiB);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  RunWith(pool, kMiB);
  EXPECT_EQ(pool.kept_bytes(), kMiB);
}

TEST(ScratchPoolTest, TwoRunsAtATimeHaveTheirOwnBlocks) {
  ScratchPool pool;
  RunWith(pool, 2 * kMiB);
  std::optional<ScratchLease> a(std::in_place, pool, 2 * kMiB);
  std::optional<ScratchLease> b(std::in_place, pool, kMiB);
  EXPECT_NE(a->data(), b->data());
  a.reset();
  b.reset();
  EXPECT_EQ(pool.kept_bytes(), 2 * kMiB);
}

}  // namespace
}  // namespace longview::models
