// Several lanes of one locked queue, a thread each, while clients come and go and a device is lost;
// meant to be run under the thread sanitizer too.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/scheduler/device_queue.h"

namespace longview::server {
namespace {

constexpr TicketId kBatches = 1 << 20;  // Ids from here on run in batches.

// A lane's thread: every generating ticket takes `prompt` tokens of reading and a few steps.
class LaneThread {
 public:
  LaneThread(DeviceQueue& queue, int lane)
      : queue_(queue), lane_(lane), thread_([this] { Loop(); }) {}
  ~LaneThread() { Stop(); }
  void Stop() {
    queue_.Stop();
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<bool> broken{false};  // Its device; noticed at the next turn.
  std::atomic<int> finished{0}, dropped{0}, failed{0};

 private:
  struct Work {
    int prefill = 40;
    int tokens = 5;
  };

  void Loop() {
    bool lost = false;
    while (!queue_.stopped()) {
      const std::optional<Batch> turn = queue_.NextBatch(lane_);
      if (turn) {
        ASSERT_FALSE(lost);
        if (turn->kind == TurnKind::kBatch) {
          RunBatch(*turn);
        } else {
          RunSteps(*turn);
        }
      }
      if (!broken || lost) continue;
      lost = true;
      queue_.Lose(lane_);
      failed += static_cast<int>(work_.size());
      work_.clear();
    }
  }

  void RunBatch(const Batch& turn) {
    for (int layer = 0; layer < 4 && queue_.TakeDrops(lane_).wanted; ++layer) {
      std::this_thread::yield();
      while (const auto step = queue_.Interrupt(1e-5, lane_)) RunSteps(*step);
    }
    finished += static_cast<int>(turn.tickets.size());
    queue_.Finish(lane_);
  }

  void RunSteps(const Batch& turn) {
    std::vector<StepOutcome> outcomes;
    for (const TicketId id : turn.leaving) {
      ++dropped;
      EXPECT_EQ(work_.erase(id), 1u);
      outcomes.push_back({.id = id, .done = true});
    }
    const std::vector<TicketId> drops = queue_.TakeDrops(lane_).tickets;
    for (size_t i = 0; i < turn.tickets.size(); ++i) {
      const TicketId id = turn.tickets[i];
      EXPECT_EQ(work_.contains(id), turn.kind == TurnKind::kStep) << "a generation moved";
      Work& work = work_[id];
      const bool drop = std::find(drops.begin(), drops.end(), id) != drops.end();
      if (turn.kind == TurnKind::kStep) {
        work.prefill -= turn.prefill[i];
        if (work.prefill == 0) --work.tokens;
      }
      const bool done = turn.kind == TurnKind::kStep && (drop || work.tokens == 0);
      dropped += done && drop;
      finished += done && !drop;
      outcomes.push_back({.id = id, .done = done, .need = {work.prefill, 1e-6, 1e-6}});
      if (done) work_.erase(id);
    }
    queue_.Finish(outcomes, lane_);
  }

  DeviceQueue& queue_;
  const int lane_;
  std::map<TicketId, Work> work_;
  std::thread thread_;
};

TEST(LanesQueueTest, ManyThreadsAndALostLaneLeaveNothingBehind) {
  constexpr int kLanes = 3;
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  SchedulerOptions options;
  options.lanes = kLanes;
  options.max_queue_seconds = 1e9;
  options.memory_bytes = 3000;
  const SystemClock clock;
  std::atomic<int> departed{0};
  DeviceQueue queue(options, clock, [&](std::span<const Departure> departures) {
    for (const Departure& departure : departures) departed += !departure.was_running;
  });
  std::vector<std::unique_ptr<LaneThread>> lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.push_back(std::make_unique<LaneThread>(queue, lane));
  }
  std::atomic<int> refused{0}, removed{0};
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
        if (random() % 3 == 0) {
          ticket.id += kBatches;
          ticket.model = 1;
        } else {
          ticket.model = 2 + random() % 2;
          ticket.granule = 16;
          ticket.bytes = 100;
          ticket.lane = static_cast<int>(random() % 6) - 3;
          if (ticket.lane < 0) ticket.lane = -1;
        }
        if (random() % 16 == 0) ticket.deadline = absl::Now() + absl::Milliseconds(random() % 5);
        refused += queue.Admit(ticket).verdict != Verdict::kAdmitted;
        open.push_back(ticket.id);
        if (random() % 8 == 0) {
          removed += queue.Cancel(open[random() % open.size()]) == CancelOutcome::kRemoved;
        }
        if (random() % 64 == 0) queue.Wake(static_cast<int>(random() % kLanes));
        if (t == 0 && i == kEach / 2) {
          lanes[1]->broken = true;
          queue.Wake(1);
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (int i = 0; i < 20000 && queue.remembered() > 0; ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(queue.remembered(), 0u) << "work is left and nobody takes it";
  int ended = removed + departed + refused;
  for (const auto& lane : lanes) {
    lane->Stop();
    ended += lane->finished + lane->dropped + lane->failed;
  }
  EXPECT_EQ(ended, kThreads * kEach);
  EXPECT_TRUE(queue.lost(1));
  EXPECT_GT(lanes[0]->finished, 0);
  EXPECT_GT(lanes[2]->finished, 0);
}

}  // namespace
}  // namespace longview::server
