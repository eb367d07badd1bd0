// The lock, the timer and the blocking calls; meant to be run under the thread sanitizer too.
#include "server/scheduler/device_queue.h"

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace longview::server {
namespace {

Ticket Make(TicketId id, double seconds, absl::Duration due = absl::InfiniteDuration()) {
  return {.id = id, .model = 1, .client = "a", .seconds = seconds, .deadline = absl::Now() + due};
}

struct Departed {
  std::mutex mutex;
  std::map<TicketId, absl::Time> when;
  std::set<TicketId> waiting;

  void Add(std::span<const Departure> departures) {
    std::lock_guard lock(mutex);
    for (const Departure& departure : departures) {
      when[departure.id] = absl::Now();
      // Those that were running are reported to the executor too.
      if (!departure.was_running) waiting.insert(departure.id);
    }
  }
  bool Wait(size_t count) {
    for (int i = 0; i < 2000; ++i) {
      {
        std::lock_guard lock(mutex);
        if (when.size() >= count) return true;
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    return false;
  }
};

class DeviceQueueTest : public ::testing::Test {
 protected:
  SystemClock clock_;
  Departed departed_;
  DeviceQueue queue_{SchedulerOptions(), clock_,
                     [this](std::span<const Departure> d) { departed_.Add(d); }};
};

TEST_F(DeviceQueueTest, TimerFiresWhileTheDeviceIsBusy) {
  queue_.Admit(Make(1, 0.001));
  ASSERT_TRUE(queue_.NextBatch().has_value());  // Never finished.
  std::vector<absl::Time> due;
  for (TicketId id = 2; id < 12; ++id) {
    const absl::Duration after = absl::Milliseconds(20.0 * static_cast<double>(12 - id));
    const Ticket ticket = Make(id, 0.01, after);
    ASSERT_EQ(queue_.Admit(ticket).verdict, Verdict::kAdmitted) << id;
    due.push_back(ticket.deadline - absl::Milliseconds(10));
  }
  queue_.Expect(Make(12, 0, absl::Milliseconds(50)));
  ASSERT_TRUE(departed_.Wait(11));
  std::vector<double> late_ms;
  for (TicketId id = 2; id < 12; ++id) {
    late_ms.push_back(absl::ToDoubleMilliseconds(departed_.when[id] - due[id - 2]));
  }
  std::sort(late_ms.begin(), late_ms.end());
  EXPECT_GE(late_ms.front(), 0);
  // The median, as a loaded machine may be late once or twice.
  EXPECT_LT(late_ms[late_ms.size() / 2], 10);
}

TEST_F(DeviceQueueTest, WakeInterruptsOnce) {
  std::atomic<int> empty{0};
  std::thread executor([&] {
    while (!queue_.stopped()) {
      if (!queue_.NextBatch()) {
        ++empty;
      } else {
        queue_.Finish();
      }
    }
  });
  queue_.Wake();
  while (empty == 0) std::this_thread::yield();
  queue_.Stop();
  executor.join();
  EXPECT_LE(empty, 2);
}

// Clients submit, cancel and time out from several threads while one executor runs. Every
// ticket ends exactly once, and nothing is left.
TEST_F(DeviceQueueTest, CancelStorm) {
  constexpr int kThreads = 4;
  constexpr int kPerThread = 2500;
  std::vector<std::atomic<int>> ends(kThreads * kPerThread + 1);
  std::atomic<int> executed{0}, dropped{0};

  std::thread executor([&] {
    while (true) {
      const std::optional<Batch> batch = queue_.NextBatch();
      if (!batch) break;
      std::set<TicketId> alive(batch->tickets.begin(), batch->tickets.end());
      for (int layer = 0; layer < 4; ++layer) {
        const DeviceQueue::Drops drops = queue_.TakeDrops();
        for (const TicketId id : drops.tickets) {
          EXPECT_EQ(alive.erase(id), 1u);
          ++ends[id];
          ++dropped;
        }
        EXPECT_EQ(drops.wanted, !alive.empty());
        if (!drops.wanted) break;
        std::this_thread::yield();
      }
      // A ticket dropped from here on was cancelled too late to be seen between layers: it ends
      // with the batch.
      queue_.Finish();
      for (const TicketId id : alive) {
        ++ends[id];
        ++executed;
      }
    }
  });

  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 1; i <= kPerThread; ++i) {
        const TicketId id = static_cast<TicketId>(t * kPerThread + i);
        Ticket ticket = Make(id, 1e-4);
        ticket.client = std::string(1, static_cast<char>('a' + t));
        ticket.model = random() % 2;
        if (random() % 4 == 0) ticket.deadline = absl::Now() + absl::Milliseconds(random() % 3);
        Ticket unknown = ticket;
        unknown.deadline = absl::InfiniteFuture();
        if (queue_.Expect(unknown).verdict != Verdict::kAdmitted) {
          ++ends[id];
          continue;
        }
        const Admission admission = queue_.Admit(ticket);
        if (admission.verdict != Verdict::kAdmitted) ++ends[id];
        for (const TicketId other : admission.displaced) ++ends[other];
        if (random() % 2 == 0) {
          if (random() % 2 == 0) std::this_thread::yield();
          if (queue_.Cancel(id) == CancelOutcome::kRemoved) ++ends[id];
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (int i = 0; i < 10000 && queue_.remembered() > 0; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(queue_.remembered(), 0u);
  queue_.Stop();
  executor.join();
  for (const TicketId id : departed_.waiting) ++ends[id];
  int wrong = 0;
  for (size_t id = 1; id < ends.size(); ++id) wrong += ends[id] != 1;
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(executed, 0);
}

}  // namespace
}  // namespace longview::server
