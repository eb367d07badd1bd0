// Steps of the wall clock change nothing that has a deadline. This program's clock_gettime replaces
// the library's, for what it links as well. The kernel does not see these steps: of waits it is
// counted which clock they name to it.
#include "server/scheduler/steady_clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/scheduler/device_queue.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/scheduler/without_lock.h"

namespace {

std::atomic<long> wall_step_seconds{0};
std::atomic<int> steady_waits{0};

}  // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(
    clockid_t clock, struct timespec* time) noexcept {
  const long failed = syscall(SYS_clock_gettime, clock, time);
  if (failed == 0 && clock == CLOCK_REALTIME) time->tv_sec += wall_step_seconds;
  return static_cast<int>(failed);
}

extern "C" __attribute__((visibility("default"))) int pthread_cond_clockwait(
    pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
    const struct timespec* deadline) {
  static const auto next = reinterpret_cast<decltype(&pthread_cond_clockwait)>(
      dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  if (clock == CLOCK_MONOTONIC) ++steady_waits;
  return next(condition, mutex, clock, deadline);
}

namespace longview::server {
namespace {

class ClockStepTest : public ::testing::TestWithParam<long> {
 protected:
  void SetUp() override { SteadyNow(); }
  void TearDown() override { wall_step_seconds = 0; }
};

TEST_P(ClockStepTest, SteadyNowDoesNotStep) {
  const absl::Time before = SteadyNow();
  EXPECT_LT(absl::AbsDuration(before - absl::Now()), absl::Seconds(5));
  wall_step_seconds = GetParam();
  EXPECT_GT(absl::AbsDuration(absl::FromChrono(std::chrono::system_clock::now()) - before),
            absl::Minutes(30))
      << "the wall clock of this test does not step";
  EXPECT_GE(SteadyNow(), before);
  EXPECT_LT(SteadyNow() - before, absl::Seconds(5));
}

TEST_P(ClockStepTest, DeadlinesAreNeitherExpiredNorProlonged) {
  const SteadyClock clock;
  std::mutex mutex;
  std::vector<std::pair<TicketId, absl::Time>> left;
  DeviceQueue queue({}, clock, [&](std::span<const Departure> departures) {
    std::lock_guard lock(mutex);
    for (const Departure& one : departures) left.emplace_back(one.id, clock.Now());
  });
  const absl::Time start = clock.Now();
  Ticket near, far;
  near.id = 1;
  near.deadline = start + absl::Milliseconds(100);
  far.id = 2;
  far.deadline = start + absl::Minutes(10);
  ASSERT_EQ(queue.Expect(near).verdict, Verdict::kAdmitted);
  ASSERT_EQ(queue.Expect(far).verdict, Verdict::kAdmitted);
  wall_step_seconds = GetParam();
  const auto departures = [&] {
    std::lock_guard lock(mutex);
    return left.size();
  };
  const absl::Time latest = start + absl::Seconds(20);
  while (departures() == 0 && clock.Now() < latest) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(queue.Gauges().queued_requests, 1);
  queue.Cancel(2);
  std::lock_guard lock(mutex);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].first, 1u);
  EXPECT_GE(left[0].second, near.deadline);
}

TEST_P(ClockStepTest, WaitsLastAsLongAsTheySay) {
  absl::Mutex mutex;
  SteadyCondVar changed;
  bool happened = false;
  absl::MutexLock lock(&mutex);
  wall_step_seconds = GetParam();
  const int waits = steady_waits;
  const absl::Time start = SteadyNow();
  EXPECT_FALSE(changed.AwaitFor(&mutex, absl::Condition(&happened), absl::Milliseconds(50)));
  EXPECT_GE(SteadyNow() - start, absl::Milliseconds(50));
  EXPECT_FALSE(
      changed.AwaitUntil(&mutex, absl::Condition(&happened), SteadyNow() + absl::Milliseconds(50)));
  changed.WaitFor(&mutex, absl::Milliseconds(50));
  EXPECT_LT(SteadyNow() - start, absl::Seconds(20));
  EXPECT_GE(steady_waits - waits, 3);
}

TEST(SteadyCondVarTest, TellsAWaitThatHasNoEnd) {
  absl::Mutex mutex;
  SteadyCondVar changed;
  bool happened = false;
  std::thread other([&] {
    absl::MutexLock lock(&mutex);
    happened = true;
    changed.SignalAll();
  });
  {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(changed.AwaitFor(&mutex, absl::Condition(&happened), absl::InfiniteDuration()));
  }
  other.join();
}

TEST(WithoutLockTest, TakesTheLockAgainWhateverHappens) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  const auto is_free = [&mutex] {
    if (!mutex.TryLock()) return false;
    mutex.Unlock();
    return true;
  };
  EXPECT_TRUE(WithoutLock(&mutex, is_free));
  mutex.AssertHeld();
  EXPECT_THROW(WithoutLock(&mutex, [] { throw std::bad_alloc(); }), std::bad_alloc);
  bool taken = true;
  std::thread([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    taken = mutex.TryLock();
    if (taken) mutex.Unlock();
  }).join();
  EXPECT_FALSE(taken);
}

INSTANTIATE_TEST_SUITE_P(Steps, ClockStepTest, ::testing::Values(3600L, -3600L));

}  // namespace
}  // namespace longview::server
