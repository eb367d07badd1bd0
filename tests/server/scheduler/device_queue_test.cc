// The lock, the timer and the blocking calls; meant to be run under the thread sanitizer too.
#include "server/scheduler/device_queue.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
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
      // Running tickets are also reported to the executor.
      if (!departure.was_running) waiting.insert(departure.id);
    }
  }
  // When the ticket departed; InfiniteFuture if it has not after 20 s.
  absl::Time Wait(TicketId id) {
    for (int i = 0; i < 20000; ++i) {
      {
        std::lock_guard lock(mutex);
        if (const auto departure = when.find(id); departure != when.end()) return departure->second;
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    return absl::InfiniteFuture();
  }
};

class DeviceQueueTest : public ::testing::Test {
 protected:
  SystemClock clock_;
  Departed departed_;
  DeviceQueue queue_{SchedulerOptions(), clock_,
                     [this](std::span<const Departure> d) { departed_.Add(d); }};
};

// Twenty requests of a list, two of which are refused before the client hears of it, and the next.
TEST_F(DeviceQueueTest, RefusedListsAreToldToComeOneAfterTheOther) {
  queue_.Admit(Make(1, 29));
  ASSERT_TRUE(queue_.NextBatch().has_value());  // Never finished.
  queue_.Admit(Make(2, 29));
  const auto refused = [&](TicketId id, absl::Time arrival) {
    Ticket ticket = Make(id, 0.1);
    ticket.seconds = 2;
    ticket.list = 3;
    ticket.arrival = arrival;
    const Admission admission = queue_.Admit(ticket);
    EXPECT_EQ(admission.verdict, Verdict::kQueueFull);
    return admission.retry_after.value_or(absl::ZeroDuration());
  };
  const absl::Time first = absl::Now();
  const absl::Duration told = refused(3, first);
  EXPECT_LE(refused(4, first), told);
  EXPECT_GT(refused(5, first + absl::Nanoseconds(1)), told + absl::Seconds(6));
}

TEST_F(DeviceQueueTest, TimerFiresWhileTheDeviceIsBusy) {
  queue_.Admit(Make(1, 0.001));
  ASSERT_TRUE(queue_.NextBatch().has_value());  // Never finished.
  queue_.Admit(Make(2, 0.01, absl::Hours(1)));
  absl::Duration least_late = absl::InfiniteDuration();
  // A busy machine may fire late, or be too late to admit the ticket, but not every time.
  for (TicketId id = 3; id < 503 && least_late > absl::Milliseconds(10); ++id) {
    const Ticket ticket = Make(id, 0.01, absl::Milliseconds(15));
    const bool admitted = queue_.Admit(ticket).verdict == Verdict::kAdmitted;
    if (!admitted) continue;
    const absl::Duration late = departed_.Wait(id) - (ticket.deadline - absl::Milliseconds(10));
    ASSERT_GE(late, absl::ZeroDuration());
    ASSERT_LT(late, absl::InfiniteDuration());
    least_late = std::min(least_late, late);
  }
  EXPECT_LE(least_late, absl::Milliseconds(10)) << "as late as a look now and then";
  const Ticket expected = Make(1000, 0, absl::Milliseconds(20));
  queue_.Expect(expected);
  EXPECT_GE(departed_.Wait(1000), expected.deadline);
  EXPECT_EQ(queue_.Gauges().queued_requests, 1) << "the one with an hour";
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
