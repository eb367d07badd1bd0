// Several devices in simulated time that do what one scheduler says, each exactly as fast as
// predicted; checks what holds at every moment.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/scheduler/scheduler.h"
#include "tests/support/fake_clock.h"

namespace longview::server {

class LaneWorld {
 public:
  enum class End { kNone, kDone, kCancelled, kLate, kMemory, kDisplaced, kFailed, kLost };

  // A request and what became of it.
  struct Call {
    Ticket ticket;
    int prefill = 0, tokens = 0;  // Still to do, if it generates.
    uint64_t document = 0;        // Document that it reads into; 0 = none.
    absl::Time arrival, started = absl::InfiniteFuture(), ended;
    double promised = 0;  // Wait in seconds that its admission predicted.
    int lane = -1;        // Lane on which it started.
    bool cancelled = false;
    End end = End::kNone;
  };

  explicit LaneWorld(const SchedulerOptions& options)
      : options_(options),
        scheduler(WithoutNesting(options), clock),
        start_(clock.Now()),
        devices_(static_cast<size_t>(options.lanes)) {}

  Call Batched(TicketId id, double seconds, std::string client = "a", ModelId model = 1) const {
    Call call;
    call.ticket = {.id = id, .model = model, .client = std::move(client), .seconds = seconds};
    return call;
  }
  Call Generating(TicketId id, int prompt, int tokens, std::string client = "a") const {
    Call call;
    call.prefill = prompt;
    call.tokens = tokens;
    call.ticket = {.id = id,
                   .model = 9,
                   .client = std::move(client),
                   .seconds = prompt * kRead + tokens * kSample,
                   .bytes = static_cast<double>(prompt + tokens),
                   .prefill_alignment = 16,
                   .step_seconds = 2e-3};
    return call;
  }

  Admission Admit(Call call) {
    Admission admission = scheduler.Admit(call.ticket);
    for (const TicketId id : admission.displaced) Over(id, End::kDisplaced);
    if (admission.verdict == Verdict::kAdmitted) {
      call.arrival = clock.Now();
      call.promised = admission.wait_seconds;
      calls[call.ticket.id] = std::move(call);
    }
    Poll();
    return admission;
  }

  void Cancel(TicketId id) {
    Call& call = calls.at(id);
    if (call.end != End::kNone || call.cancelled) return;
    call.cancelled = true;
    if (scheduler.Cancel(id) == CancelOutcome::kRemoved) Over(id, End::kCancelled);
    Poll();
  }

  // The device fails in the turn it is in, or at once.
  void Break(int lane) {
    devices_[static_cast<size_t>(lane)].broken = true;
    if (!scheduler.running(lane)) Lose(lane);
    Poll();
  }

  void CloseDocument(uint64_t key, int lane) {
    held_.erase(key);
    scheduler.CloseDocument(key, lane);
    Poll();
  }

  double now() const { return absl::ToDoubleSeconds(clock.Now() - start_); }
  int CountOf(End end) const {
    return static_cast<int>(std::count_if(
        calls.begin(), calls.end(), [end](const auto& call) { return call.second.end == end; }));
  }

  void RunUntil(double seconds) {
    const absl::Time end = start_ + absl::Seconds(seconds);
    while (true) {
      absl::Time next = scheduler.NextExpiry();
      for (const Device& device : devices_) next = std::min(next, device.next);
      if (next > end) break;
      clock.AdvanceTo(std::max(next, clock.Now()));
      for (int lane = 0; lane < options_.lanes; ++lane) {
        while (devices_[static_cast<size_t>(lane)].next <= clock.Now()) Event(lane);
      }
      Expire();
      Poll();
    }
    clock.AdvanceTo(end);
  }

  void ExpectNothingLeft() {
    EXPECT_FALSE(scheduler.HasWork());
    EXPECT_EQ(scheduler.remembered(), 0u);
    for (int lane = 0; lane < options_.lanes; ++lane) {
      EXPECT_EQ(scheduler.reserved_bytes(lane), 0);
      EXPECT_EQ(scheduler.held_bytes(lane), 0);
    }
    EXPECT_EQ(CountOf(End::kNone), 0);
  }

  testing::FakeClock clock;
  const SchedulerOptions options_;
  Scheduler scheduler;
  std::map<TicketId, Call> calls;
  std::vector<double> busy = std::vector<double>(static_cast<size_t>(options_.lanes));
  std::map<std::string, double> served;  // Seconds of batches, by client.

 private:
  static SchedulerOptions WithoutNesting(SchedulerOptions options) {
    options.nested_share = 0;
    return options;
  }

  static constexpr double kRead = 1e-4, kSample = 1e-3;
  static constexpr int kLayers = 4;

  struct Device {
    std::optional<Batch> batch, step;
    int layers_left = 0;
    absl::Time next = absl::InfiniteFuture();  // End of its current piece of work.
    bool broken = false;
  };

  void Over(TicketId id, End end) {
    Call& call = calls.at(id);
    EXPECT_EQ(call.end, End::kNone) << id << " ended twice";
    call.end = end;
    call.ended = clock.Now();
  }

  void Expire() {
    for (const Departure& departure : scheduler.Expire()) {
      Call& call = calls.at(departure.id);
      call.cancelled = true;
      if (departure.was_running) continue;
      Over(departure.id, departure.lost     ? End::kLost
                         : departure.memory ? End::kMemory
                                            : End::kLate);
    }
  }

  void Poll() {
    // Twice, as what one lane takes may leave something to another.
    for (int lane = 0; lane < 2 * options_.lanes; ++lane) Offer(lane % options_.lanes);
    for (int lane = 0; lane < options_.lanes; ++lane) {
      EXPECT_LE(scheduler.reserved_bytes(lane) + scheduler.held_bytes(lane),
                options_.memory_bytes > 0 ? options_.memory_bytes : 1e300);
      const bool idle = !scheduler.running(lane) && !scheduler.lost(lane);
      EXPECT_FALSE(idle && scheduler.waiting() && !scheduler.WaitsToGenerate())
          << "lane " << lane << " stands still while work waits";
    }
  }

  void Offer(int lane) {
    if (scheduler.running(lane)) return;
    Expire();
    if (const std::optional<Batch> turn = scheduler.NextBatch(lane)) Take(lane, *turn);
  }

  void Take(int lane, const Batch& turn) {
    EXPECT_FALSE(scheduler.lost(lane));
    Device& device = devices_[static_cast<size_t>(lane)];
    if (turn.kind != TurnKind::kStep) {
      for (const TicketId id : turn.tickets) {
        Call& call = calls.at(id);
        EXPECT_EQ(call.lane, -1) << id << " started twice";
        EXPECT_TRUE(call.ticket.lane < 0 || call.ticket.lane == lane) << id << " is elsewhere";
        call.lane = lane;
        call.started = clock.Now();
      }
    }
    if (turn.kind == TurnKind::kBatch) {
      device.batch = turn;
      device.layers_left = kLayers;
      device.next = clock.Now() + absl::Seconds(turn.seconds / kLayers);
      return;
    }
    device.step = turn;
    device.next = clock.Now() + absl::Seconds(turn.seconds);
  }

  // Ends the device's current piece of work.
  void Event(int lane) {
    Device& device = devices_[static_cast<size_t>(lane)];
    device.next = absl::InfiniteFuture();
    if (device.step) {
      busy[static_cast<size_t>(lane)] += device.step->seconds;
      FinishStep(lane, *std::exchange(device.step, std::nullopt));
    } else {
      busy[static_cast<size_t>(lane)] += device.batch->seconds / kLayers;
      --device.layers_left;
    }
    if (device.broken || (device.batch && device.layers_left == 0)) {
      if (device.batch) FinishBatch(lane, *std::exchange(device.batch, std::nullopt));
      if (device.broken) Lose(lane);
    } else if (device.batch) {
      scheduler.TakeDrops(lane);
      const double layer = device.batch->seconds / kLayers;
      if (const auto step = scheduler.Interrupt(layer, lane)) return Take(lane, *step);
      device.next = clock.Now() + absl::Seconds(layer);
    }
  }

  void FinishBatch(int lane, const Batch& batch) {
    const bool broken = devices_[static_cast<size_t>(lane)].broken;
    scheduler.Finish(lane);
    for (const TicketId id : batch.tickets) {
      Call& call = calls.at(id);
      Over(id, call.cancelled ? End::kCancelled : broken ? End::kFailed : End::kDone);
      if (!broken) served[call.ticket.client] += call.ticket.seconds;
    }
  }

  void FinishStep(int lane, const Batch& turn) {
    const bool broken = devices_[static_cast<size_t>(lane)].broken;
    std::vector<StepOutcome> outcomes;
    for (const TicketId id : turn.leaving) {
      Over(id, End::kCancelled);
      outcomes.push_back({.id = id, .done = true});
    }
    const std::vector<TicketId> drops = scheduler.TakeDrops(lane);
    for (size_t i = 0; i < turn.tickets.size(); ++i) {
      Call& call = calls.at(turn.tickets[i]);
      EXPECT_EQ(call.lane, lane) << "a generation moved";
      if (turn.kind == TurnKind::kStep) {
        call.prefill -= turn.prefill[i];
        if (call.prefill == 0) --call.tokens;
      }
      const bool dropped = std::count(drops.begin(), drops.end(), call.ticket.id) > 0;
      const bool step = turn.kind == TurnKind::kStep;
      StepOutcome outcome{.id = call.ticket.id, .need = {call.prefill, kRead, kSample}};
      outcome.done = broken || (step && (dropped || call.tokens == 0));
      if (outcome.done) {
        Over(call.ticket.id, dropped ? End::kCancelled : broken ? End::kFailed : End::kDone);
        if (call.document != 0) {
          outcome.hold = call.document;
          outcome.hold_bytes = held_[call.document] += call.ticket.bytes;
        }
      }
      outcomes.push_back(outcome);
    }
    scheduler.Finish(outcomes, lane);
  }

  void Lose(int lane) {
    scheduler.Lose(lane);
    for (auto& [id, call] : calls) {
      if (call.lane == lane && call.end == End::kNone) Over(id, End::kFailed);
    }
    Expire();
  }

  const absl::Time start_;
  std::vector<Device> devices_;
  std::map<uint64_t, double> held_;  // By documents.
};

}  // namespace longview::server
