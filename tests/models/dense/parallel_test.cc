#include "models/parallel.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "models/model.h"

namespace longview::models {
namespace {

using Ids = std::vector<std::thread::id>;

Ids Threads(const kernels::ParallelFor& pool) {
  Ids ids(pool.threads());
  kernels::RunOnThreads(pool, [&](int thread) { ids[thread] = std::this_thread::get_id(); });
  return ids;
}

TEST(TorchParallelForTest, EveryIndexRunsOnAThreadOfItsOwn) {
  for (const int threads : {1, 2, 4}) {
    SetComputeThreads(threads);
    const Ids ids = Threads(TorchParallelFor());
    ASSERT_EQ(ids.size(), static_cast<size_t>(threads));
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size()) << threads << " threads";
    EXPECT_FALSE(std::set(ids.begin(), ids.end()).contains(std::thread::id()));
  }
}

TEST(TorchParallelForTest, InsideAnotherRegionAllRunsOnOneThread) {
  SetComputeThreads(2);
  const TorchParallelFor pool;
  std::vector<Ids> inner(2);
  kernels::RunOnThreads(pool, [&](int thread) { inner[thread] = Threads(pool); });
  for (const Ids& ids : inner) {
    ASSERT_EQ(ids.size(), 2u);
    EXPECT_EQ(ids[0], ids[1]);
  }
}

TEST(TeamScopeTest, LoopsOfTheThreadAloneHaveThatTeam) {
  SetComputeThreads(3);
  const TorchParallelFor pool;
  EXPECT_EQ(WholeTeam(), 3);
  {
    const TeamScope one(1);
    EXPECT_EQ(Threads(pool), Ids{std::this_thread::get_id()});
    EXPECT_EQ(WholeTeam(), 3);
    std::thread([&] { EXPECT_EQ(Threads(pool).size(), 3u); }).join();
    {
      const TeamScope all(WholeTeam());
      const Ids ids = Threads(pool);
      EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 3u);
    }
    EXPECT_EQ(Threads(pool).size(), 1u);
  }
  EXPECT_EQ(Threads(pool).size(), 3u);
}

TEST(ParallelRangesTest, CoversEverythingOnce) {
  SetComputeThreads(3);
  for (const long count : {0L, 1L, 7L, 64L, 1000L}) {
    std::vector<int> seen(count);
    ParallelRanges(TorchParallelFor(), count, 8, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) ++seen[i];
    });
    EXPECT_EQ(std::vector<int>(count, 1), seen) << count;
  }
}

}  // namespace
}  // namespace longview::models
