// Generating and batch tickets through the locked queue, from many threads at once; meant to be
// run under the thread sanitizer too.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/scheduler/device_queue.h"

namespace longview::server {
namespace {

constexpr TicketId kBatches = 1 << 20;  // Ids from here on run in batches.

// The device's thread: every ticket takes `prompt` tokens of reading and a few steps.
class QueueDevice {
 public:
  explicit QueueDevice(DeviceQueue& queue) : queue_(queue), thread_([this] { Loop(); }) {}
  ~QueueDevice() { Stop(); }
  void Stop() {
    queue_.Stop();
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<int> finished{0}, dropped{0}, interruptions{0};

 private:
  struct Work {
    int prefill = 40;
    int tokens = 5;
  };

  void Loop() {
    while (!queue_.stopped()) {
      const std::optional<Batch> turn = queue_.NextBatch();
      if (!turn) continue;
      if (turn->kind != TurnKind::kBatch) {
        RunSteps(*turn);
        continue;
      }
      for (int layer = 0; layer < 4 && queue_.TakeDrops().wanted; ++layer) {
        std::this_thread::yield();
        while (const auto step = queue_.Interrupt(1e-5)) {
          ++interruptions;
          RunSteps(*step);
        }
      }
      finished += static_cast<int>(turn->tickets.size());
      queue_.Finish();
    }
  }

  void RunSteps(const Batch& turn) {
    std::vector<StepOutcome> outcomes;
    for (const TicketId id : turn.leaving) {
      ++dropped;
      work_.erase(id);
      outcomes.push_back({.id = id, .done = true});
    }
    const std::vector<TicketId> drops = queue_.TakeDrops().tickets;
    for (size_t i = 0; i < turn.tickets.size(); ++i) {
      const TicketId id = turn.tickets[i];
      Work& work = work_[id];
      const bool drop = std::find(drops.begin(), drops.end(), id) != drops.end();
      if (turn.kind == TurnKind::kStep) {
        work.prefill -= turn.prefill[i];
        if (work.prefill == 0) --work.tokens;
      }
      const bool done = turn.kind == TurnKind::kStep && (drop || work.tokens == 0);
      dropped += done && drop;
      finished += done && !drop;
      StepOutcome outcome{.id = id, .done = done, .need = {work.prefill, 1e-6, 1e-6}};
      if (done) {
        work_.erase(id);
        if (id % 7 == 0) {
          outcome.hold = 1 + id % 3;
          outcome.hold_bytes = 10;
        }
      }
      outcomes.push_back(outcome);
    }
    queue_.Finish(outcomes);
  }

  DeviceQueue& queue_;
  std::map<TicketId, Work> work_;
  std::thread thread_;
};

TEST(StepsQueueTest, ManyThreadsLeaveNothingBehind) {
  SchedulerOptions options;
  options.max_queue_seconds = 1e9;
  options.memory_bytes = 3000;
  const SystemClock clock;
  std::atomic<int> departed{0};
  DeviceQueue queue(options, clock, [&](std::span<const Departure> departures) {
    for (const Departure& departure : departures) departed += !departure.was_running;
  });
  QueueDevice device(queue);
  constexpr int kThreads = 4;
  constexpr int kEach = 3000;
  std::atomic<int> admitted{0}, refused{0}, removed{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<TicketId> open;
      for (int i = 1; i <= kEach; ++i) {
        Ticket ticket;
        ticket.id = static_cast<TicketId>(t * kEach + i);
        ticket.client = std::to_string(random() % 5);
        ticket.seconds = 1e-4;
        if (random() % 4 == 0) {
          ticket.id += kBatches;
          ticket.model = 1;
        } else {
          ticket.model = 2 + random() % 2;
          ticket.granule = 16;
          ticket.bytes = 100;
        }
        if (random() % 16 == 0) ticket.deadline = absl::Now() + absl::Milliseconds(random() % 5);
        Ticket unknown = ticket;
        unknown.bytes = 0;
        unknown.deadline = absl::InfiniteFuture();
        const Verdict verdict = queue.Expect(unknown).verdict == Verdict::kAdmitted
                                    ? queue.Admit(ticket).verdict
                                    : Verdict::kQueueFull;
        ++(verdict == Verdict::kAdmitted ? admitted : refused);
        open.push_back(ticket.id);
        if (random() % 8 == 0) {
          removed += queue.Cancel(open[random() % open.size()]) == CancelOutcome::kRemoved;
        }
        if (random() % 64 == 0) queue.Hold(1 + random() % 3, 0);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (int i = 0; i < 20000 && queue.remembered() > 0; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
    for (uint64_t key = 1; key <= 3; ++key) queue.Hold(key, 0);
  }
  device.Stop();
  EXPECT_EQ(queue.remembered(), 0u);
  EXPECT_EQ(device.finished + device.dropped + removed + departed + refused, kThreads * kEach);
  EXPECT_GT(device.finished, kThreads * kEach / 2);
  EXPECT_GT(device.interruptions, 0);
}

}  // namespace
}  // namespace longview::server
