// A storm on a locked queue: threads that run the lanes' turns while clients come and go. Meant to
// be run under the thread sanitizer too.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/scheduler/device_queue.h"

namespace longview::server {

// A lane's thread: every generating ticket takes 40 tokens of reading and a few steps.
class LaneThread {
 public:
  // Sees every outcome before the queue does.
  using OnOutcome = std::function<void(StepOutcome& outcome)>;

  explicit LaneThread(DeviceQueue& queue, int lane = 0, OnOutcome on_outcome = nullptr)
      : queue_(queue),
        lane_(lane),
        on_outcome_(std::move(on_outcome)),
        thread_([this] { Loop(); }) {}
  ~LaneThread() { Stop(); }
  void Stop() {
    queue_.Stop();
    if (thread_.joinable()) thread_.join();
  }

  int ended() const { return finished + dropped + failed; }

  std::atomic<bool> broken{false};                      // Its device; noticed at the next turn.
  std::atomic<int> finished{0}, dropped{0}, failed{0};  // Tickets.
  std::atomic<int> interruptions{0};                    // Batches interrupted by steps.

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
      while (const auto step = queue_.Interrupt(1e-5, lane_)) {
        ++interruptions;
        step->kind == TurnKind::kBatch ? RunBatch(*step) : RunSteps(*step);
      }
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
      if (on_outcome_) on_outcome_(outcomes.back());
      if (done) work_.erase(id);
    }
    queue_.Finish(outcomes, lane_);
  }

  DeviceQueue& queue_;
  const int lane_;
  const OnOutcome on_outcome_;
  std::map<TicketId, Work> work_;
  std::thread thread_;
};

// A queue, and the clients whose tickets it takes.
class QueueStorm {
 public:
  static constexpr int kClients = 4;  // Threads.

  explicit QueueStorm(int lanes)
      : queue_(Options(lanes), clock_, [this](std::span<const Departure> departures) {
          for (const Departure& departure : departures) departed_ += !departure.was_running;
        }) {}

  DeviceQueue& queue() { return queue_; }

  // Whether the ticket runs in a batch; else it generates.
  static bool InBatch(const Ticket& ticket) { return ticket.model == 1; }

  // Every client's thread calls `admit`, which says whether the queue took the ticket, for `each`
  // tickets, one in `batches` of which runs in a batch, and cancels some. Returns when all have.
  void RunClients(int each, unsigned batches,
                  const std::function<bool(std::mt19937& random, Ticket ticket)>& admit) {
    std::vector<std::thread> clients;
    for (int t = 0; t < kClients; ++t) {
      clients.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        std::vector<TicketId> open;
        for (int i = 1; i <= each; ++i) {
          open.push_back(static_cast<TicketId>(t * each + i));
          refused_ += !admit(random, RandomTicket(random, open.back(), batches));
          if (random() % 8 != 0) continue;
          removed_ += queue_.Cancel(open[random() % open.size()]) == CancelOutcome::kRemoved;
        }
      });
    }
    for (std::thread& client : clients) client.join();
  }

  // Waits until the queue remembers no ticket; `meanwhile` goes on all the time.
  void Settle(const std::function<void()>& meanwhile = [] {}) {
    for (int i = 0; i < 20000 && queue_.remembered() > 0; ++i) {
      absl::SleepFor(absl::Milliseconds(1));
      meanwhile();
    }
    EXPECT_EQ(queue_.remembered(), 0u) << "work is left and nobody takes it";
  }

  // Tickets that no lane ended.
  int ended() const { return refused_ + removed_ + departed_; }

 private:
  // One in 16 has a deadline of milliseconds.
  static Ticket RandomTicket(std::mt19937& random, TicketId id, unsigned batches) {
    Ticket ticket;
    ticket.id = id;
    ticket.client = std::to_string(random() % 5);
    ticket.seconds = 1e-4;
    if (random() % batches == 0) {
      ticket.model = 1;
    } else {
      ticket.model = 2 + random() % 2;
      ticket.prefill_alignment = 16;
      ticket.bytes = 100;
    }
    if (random() % 16 == 0) ticket.deadline = absl::Now() + absl::Milliseconds(random() % 5);
    return ticket;
  }

  static SchedulerOptions Options(int lanes) {
    SchedulerOptions options;
    options.lanes = lanes;
    options.max_queue_seconds = 1e9;
    options.memory_bytes = 3000;
    return options;
  }

  const SystemClock clock_;
  std::atomic<int> refused_{0}, removed_{0}, departed_{0};
  DeviceQueue queue_;
};

}  // namespace longview::server
