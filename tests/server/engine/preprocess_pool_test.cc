#include "server/engine/preprocess_pool.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace longview::server {
namespace {

using Turn = PreprocessPool::Turn;
constexpr size_t kLong = size_t{200} << 20;

// Jobs that run until they are let go, in the order in which they start.
class Jobs {
 public:
  PreprocessPool::Job Make(uint64_t id, const std::string& client, size_t scratch = 0,
                           size_t bytes = 10) {
    return {
        .id = id, .client = client, .bytes = bytes, .scratch = scratch, .run = [this, id](Turn) {
          Run(id);
        }};
  }
  void LetGo(uint64_t id) {
    absl::MutexLock lock(&mutex_);
    free_.push_back(id);
  }
  std::vector<uint64_t> AwaitStarted(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return started_.size() >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(30)));
    return started_;
  }

 private:
  void Run(uint64_t id) {
    absl::MutexLock lock(&mutex_);
    started_.push_back(id);
    const auto free = [&] { return std::find(free_.begin(), free_.end(), id) != free_.end(); };
    mutex_.Await(absl::Condition(&free));
  }

  absl::Mutex mutex_;
  std::vector<uint64_t> started_, free_;
};

TEST(PreprocessPool, LongJobsLeaveAThreadToShortOnes) {
  Jobs jobs;
  PreprocessPool pool(3, {});
  for (const uint64_t id : {1, 2, 3}) ASSERT_TRUE(pool.Add(jobs.Make(id, "flood", kLong)));
  EXPECT_EQ(jobs.AwaitStarted(1), (std::vector<uint64_t>{1}));
  // One long job of a client at a time; another client has the second thread for long ones.
  ASSERT_TRUE(pool.Add(jobs.Make(4, "other", kLong)));
  EXPECT_EQ(jobs.AwaitStarted(2), (std::vector<uint64_t>{1, 4}));
  ASSERT_TRUE(pool.Add(jobs.Make(5, "third", kLong)));
  ASSERT_TRUE(pool.Add(jobs.Make(6, "short")));
  EXPECT_EQ(jobs.AwaitStarted(3), (std::vector<uint64_t>{1, 4, 6}));
  for (const uint64_t id : {1, 2, 3, 4, 5, 6}) jobs.LetGo(id);
  EXPECT_EQ(jobs.AwaitStarted(6).size(), 6u);
}

TEST(PreprocessPool, LongJobsShareTheirScratch) {
  Jobs jobs;
  PreprocessPool pool(4, {.scratch = 2 * kLong});
  ASSERT_TRUE(pool.Add(jobs.Make(1, "a", kLong)));
  jobs.AwaitStarted(1);
  // A job of more scratch than there is runs alone, and no long job that comes later passes it.
  ASSERT_TRUE(pool.Add(jobs.Make(2, "b", 50 * kLong)));
  ASSERT_TRUE(pool.Add(jobs.Make(3, "c", kLong)));
  ASSERT_TRUE(pool.Add(jobs.Make(4, "c")));
  EXPECT_EQ(jobs.AwaitStarted(2), (std::vector<uint64_t>{1, 4}));
  jobs.LetGo(1);
  EXPECT_EQ(jobs.AwaitStarted(3), (std::vector<uint64_t>{1, 4, 2}));
  for (const uint64_t id : {2, 3, 4}) jobs.LetGo(id);
  EXPECT_EQ(jobs.AwaitStarted(4).back(), 3u);
}

TEST(PreprocessPool, ClientsTakeTurns) {
  Jobs jobs;
  PreprocessPool pool(1, {});
  for (const uint64_t id : {1, 2, 3, 4}) ASSERT_TRUE(pool.Add(jobs.Make(id, "flood", 0, 1 << 20)));
  jobs.AwaitStarted(1);
  for (const uint64_t id : {5, 6}) ASSERT_TRUE(pool.Add(jobs.Make(id, "other")));
  for (const uint64_t id : {1, 2, 3, 4, 5, 6}) jobs.LetGo(id);
  EXPECT_EQ(jobs.AwaitStarted(6), (std::vector<uint64_t>{1, 5, 6, 2, 3, 4}));
}

TEST(PreprocessPool, OneClientDoesNotFillIt) {
  Jobs jobs;
  PreprocessPool pool(1, {.bytes = 100, .client_bytes = 60});
  ASSERT_TRUE(pool.Add(jobs.Make(1, "flood", 0, 50)));
  EXPECT_FALSE(pool.Add(jobs.Make(2, "flood", 0, 20)));
  EXPECT_TRUE(pool.Add(jobs.Make(3, "other", 0, 50)));
  EXPECT_FALSE(pool.Add(jobs.Make(4, "third", 0, 20)));
  EXPECT_TRUE(pool.Remove(3));
  EXPECT_TRUE(pool.Add(jobs.Make(4, "third", 0, 20)));
  for (const uint64_t id : {1, 4}) jobs.LetGo(id);
}

TEST(PreprocessPool, AJobThatThrowsCountsNoLonger) {
  Jobs jobs;
  PreprocessPool pool(3, {.bytes = 100, .scratch = kLong});
  for (uint64_t id = 1; id <= 20; ++id) {
    PreprocessPool::Job job = jobs.Make(id, "a", kLong, 90);
    job.run = [](Turn) { throw std::bad_alloc(); };
    // The one before is over once there is room.
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (pool.bytes() > 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_TRUE(pool.Add(std::move(job))) << id;
  }
  // Nor does it hold up long jobs of its client.
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (pool.bytes() > 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_TRUE(pool.Add(jobs.Make(21, "a", kLong)));
  EXPECT_EQ(jobs.AwaitStarted(1), (std::vector<uint64_t>{21}));
  jobs.LetGo(21);
}

TEST(PreprocessPool, BusyIsNotStalled) {
  Jobs jobs;
  PreprocessPool pool(1, {});
  ASSERT_TRUE(pool.Add(jobs.Make(1, "a", kLong, 64 << 20)));
  ASSERT_TRUE(pool.Add(jobs.Make(2, "a")));
  jobs.AwaitStarted(1);
  absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(pool.Stalled(), absl::ZeroDuration());
  jobs.LetGo(1);
  // A short one takes long: it hangs.
  jobs.AwaitStarted(2);
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (pool.Stalled() < absl::Milliseconds(10) && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_GE(pool.Stalled(), absl::Milliseconds(10));
  jobs.LetGo(2);
}

}  // namespace
}  // namespace longview::server
