// A device in simulated time that does what a scheduler says, exactly as fast as predicted, and
// checks every promise about generating tickets on the way.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/scheduler/scheduler.h"
#include "tests/support/fake_clock.h"

namespace longview::server {

// A simulated generation and its outcome.
struct SimulatedCall {
  Ticket ticket;
  StepNeed need;
  int tokens = 1;         // Tokens to sample.
  uint64_t document = 0;  // Document that it reads into, whose bytes stay held; 0 = none.
  bool cancelled = false;
  bool over = false;
  int sampled = 0;
  double served = 0;  // Seconds of steps that were its own.
  absl::Time arrival, first_token, last_token = absl::InfinitePast();
};

// A ticket that runs in a batch, and what became of it.
struct SimulatedBatch {
  double seconds = 0;
  int layers = 1;
  double arrival = 0, started = -1, ended = -1;
  double most_wait = 0;  // Bound of server/scheduler/README.md on a batch's start.
  bool nested = false;
};

class StepDevice {
 public:
  explicit StepDevice(const SchedulerOptions& options)
      : options_(options), scheduler(options, clock), start_(clock.Now()) {}

  SimulatedCall MakeCall(TicketId id, std::string client, int prompt, int tokens,
                         ModelId model = 1) const {
    SimulatedCall call;
    call.need = {.prefill = prompt, .prefill_seconds = 1e-4, .decode_seconds = 1e-3};
    call.need.prompt_seconds = prompt * call.need.prefill_seconds;
    call.tokens = tokens;
    call.ticket.id = id;
    call.ticket.model = model;
    call.ticket.client = std::move(client);
    call.ticket.prefill_alignment = 16;
    call.ticket.step_seconds = 2e-3;
    call.ticket.prompt_seconds = call.need.prompt_seconds;
    call.ticket.seconds = call.ticket.prompt_seconds + tokens * call.need.decode_seconds;
    call.ticket.bytes = prompt + tokens;
    return call;
  }

  Verdict Admit(SimulatedCall call) {
    call.arrival = clock.Now();
    const Admission admission = scheduler.Admit(call.ticket);
    if (admission.verdict == Verdict::kAdmitted) calls[call.ticket.id] = std::move(call);
    for (const TicketId id : admission.displaced) calls.at(id).over = true;
    return admission.verdict;
  }

  // A ticket that runs in one batch of `layers` layers.
  void AdmitBatch(TicketId id, double seconds, ModelId model, int layers,
                  std::string client = "batches", absl::Duration due = absl::InfiniteDuration()) {
    Ticket ticket;
    ticket.id = id;
    ticket.model = model;
    ticket.client = std::move(client);
    ticket.seconds = seconds;
    ticket.deadline = clock.Now() + due;
    SimulatedBatch batch{.seconds = seconds, .layers = layers, .arrival = now()};
    const double full = std::max(options_.batch_seconds, options_.full_batch_seconds);
    longest_ = std::max({longest_, seconds, full});
    double work = seconds + running_;
    int count = 1;
    for (const auto& [other, waiting] : batch_calls) {
      if (waiting.started >= 0) continue;
      work += waiting.seconds;
      ++count;
    }
    batch.most_wait = absl::ToDoubleSeconds(options_.patience) +
                      2 * (1 + std::max(options_.nested_share, 0.2)) *
                          (8 * (work + count * full) + 3 * longest_) +
                      4 * scheduler.InterTokenCeiling();
    const Verdict verdict = scheduler.Admit(ticket).verdict;
    ASSERT_TRUE(verdict == Verdict::kAdmitted || due != absl::InfiniteDuration());
    if (verdict == Verdict::kAdmitted) batch_calls[id] = batch;
  }

  void Cancel(TicketId id) {
    SimulatedCall& call = calls.at(id);
    call.cancelled = true;
    const CancelOutcome outcome = scheduler.Cancel(id);
    EXPECT_NE(outcome, CancelOutcome::kUnknown);
    if (outcome == CancelOutcome::kRemoved) call.over = true;
  }

  void CloseDocument(uint64_t document) {
    held_.erase(document);
    scheduler.Hold(document, 0);
  }

  // One turn, with what interrupts it; false if there is nothing to do.
  bool Turn() {
    for (const Departure& departure : scheduler.Expire()) {
      if (batch_calls.erase(departure.id) > 0) continue;
      SimulatedCall& call = calls.at(departure.id);
      if (departure.was_running) {
        call.cancelled = true;
      } else {
        call.over = true;
        starved += departure.memory;
      }
    }
    const std::optional<Batch> turn = scheduler.NextBatch();
    if (!turn) return false;
    if (turn->kind != TurnKind::kBatch) {
      RunSteps(*turn);
      return true;
    }
    RunBatch(*turn, /*nested=*/false);
    return true;
  }

  // The lane's own task of so many slices, with what interrupts it.
  void RunTask(double predicted, double seconds, int slices) {
    scheduler.Expire();
    scheduler.BeginTask(predicted);
    for (int slice = 0; slice < slices; ++slice) {
      Work(seconds / slices);
      at_slices();
      while (const auto other = scheduler.Interrupt(seconds / slices)) {
        if (other->kind == TurnKind::kBatch) {
          RunBatch(*other, true);
        } else {
          RunSteps(*other);
        }
      }
    }
    scheduler.Finish();
  }

  // Runs until nothing is left to do, at most `turns` turns.
  void Drain(int turns) {
    for (int i = 0; i < turns && Turn(); ++i) {
    }
    ExpectNothingLeft();
  }

  void ExpectNothingLeft() const {
    EXPECT_FALSE(scheduler.HasWork());
    EXPECT_EQ(scheduler.remembered(), 0u);
    EXPECT_EQ(scheduler.reserved_bytes(), 0);
    EXPECT_EQ(scheduler.held_bytes(), 0);
    for (const auto& [id, call] : calls) {
      EXPECT_TRUE(call.over) << id << " was lost";
      if (!call.cancelled && call.sampled > 0) {
        EXPECT_EQ(call.sampled, call.tokens) << id;
      }
    }
  }

  double now() const { return absl::ToDoubleSeconds(clock.Now() - start_); }

  testing::FakeClock clock;
  const SchedulerOptions options_;
  Scheduler scheduler;
  std::map<TicketId, SimulatedCall> calls;
  int steps = 0, batches = 0, starved = 0;
  int64_t sampled = 0, prefilled = 0;
  double largest_gap = 0;  // Between two tokens.
  double stated = 0;       // The largest ceiling of these that the scheduler said.
  std::function<void()> at_slices = [] {};
  std::map<TicketId, SimulatedBatch> batch_calls;
  double largest_step = 0;
  double most_bytes = 0;
  double longest_batch = 0;  // With its interruptions.
  double slowness = 1;       // Time of steps over their prediction.

 private:
  void Work(double seconds) { clock.Advance(seconds); }

  void RunBatch(const Batch& turn, bool nested) {
    ++batches;
    const absl::Time begun = clock.Now();
    for (const TicketId id : turn.tickets) {
      batch_calls.at(id).started = now();
      batch_calls.at(id).nested = nested;
    }
    const double before = running_;
    const int layers = batch_calls.at(turn.tickets.front()).layers;
    double interrupted = 0;
    for (int layer = 0; layer < layers; ++layer) {
      running_ = before + turn.seconds * (layers - layer) / layers;
      Work(turn.seconds / layers);
      at_slices();
      if (layer + 1 == layers) break;
      scheduler.TakeDrops();
      const absl::Time paused = clock.Now();
      while (const auto other = scheduler.Interrupt(turn.seconds / layers)) {
        if (other->kind == TurnKind::kBatch) {
          EXPECT_FALSE(nested) << "a third batch at a time";
          RunBatch(*other, true);
        } else {
          RunSteps(*other);
        }
      }
      interrupted += absl::ToDoubleSeconds(clock.Now() - paused);
    }
    running_ = before;
    EXPECT_NEAR(absl::ToDoubleSeconds(clock.Now() - begun), turn.seconds + interrupted, 1e-6);
    longest_batch = std::max(longest_batch, absl::ToDoubleSeconds(clock.Now() - begun));
    scheduler.Finish();
    for (const TicketId id : turn.tickets) batch_calls.at(id).ended = now();
  }

  void RunSteps(const Batch& turn) {
    std::vector<StepOutcome> outcomes;
    if (turn.kind == TurnKind::kMembership) {
      for (const TicketId id : turn.leaving) {
        SimulatedCall& call = calls.at(id);
        EXPECT_TRUE(call.cancelled) << "only those nobody waits for leave";
        call.over = true;
        outcomes.push_back({.id = id, .done = true});
      }
      for (const TicketId id : turn.tickets)
        outcomes.push_back({.id = id, .need = calls.at(id).need});
    } else {
      ++steps;
      stated = std::max(stated, scheduler.InterTokenCeiling());
      Work(turn.seconds * slowness);
      largest_step = std::max(largest_step, turn.seconds);
      EXPECT_FALSE(turn.tickets.empty());
      double seconds = 0;
      const std::vector<TicketId> drops = scheduler.TakeDrops();
      for (size_t i = 0; i < turn.tickets.size(); ++i) {
        SimulatedCall& call = calls.at(turn.tickets[i]);
        seconds += Step(call, turn.prefill[i]);
        const bool dropped = std::count(drops.begin(), drops.end(), call.ticket.id) > 0;
        call.over = dropped || call.sampled == call.tokens;
        outcomes.push_back({.id = call.ticket.id, .done = call.over, .need = call.need});
        if (call.over && call.document != 0) {
          outcomes.back().hold = call.document;
          outcomes.back().hold_bytes = held_[call.document] += call.ticket.bytes;
        }
        if (i == 0) seconds += call.ticket.step_seconds;
      }
      EXPECT_NEAR(seconds, turn.seconds, 1e-9);
    }
    scheduler.Finish(outcomes);
    const double bytes = scheduler.reserved_bytes() + scheduler.held_bytes();
    most_bytes = std::max(most_bytes, bytes);
    if (options_.memory_bytes > 0) {
      EXPECT_LE(bytes, options_.memory_bytes);
    }
  }

  // The ticket's part of a step; returns what it takes.
  double Step(SimulatedCall& call, int prefill) {
    EXPECT_FALSE(call.over);
    const bool reads = call.need.prefill > 0;
    EXPECT_EQ(prefill > 0, reads);
    EXPECT_LE(prefill, call.need.prefill);
    EXPECT_TRUE(prefill % call.ticket.prefill_alignment == 0 || prefill == call.need.prefill);
    const double cost = reads ? prefill * call.need.prefill_seconds : call.need.decode_seconds;
    call.served += cost;
    call.need.prefill -= prefill;
    call.need.prompt_seconds = call.need.prefill * call.need.prefill_seconds;
    prefilled += prefill;
    if (call.need.prefill > 0) return cost;
    ++call.sampled;
    ++sampled;
    if (call.last_token == absl::InfinitePast()) {
      call.first_token = clock.Now();
    } else {
      largest_gap = std::max(largest_gap, absl::ToDoubleSeconds(clock.Now() - call.last_token));
    }
    call.last_token = clock.Now();
    return cost;
  }

  const absl::Time start_;
  double running_ = 0;  // Seconds that are left of batches that run.
  double longest_ = 0;
  std::map<uint64_t, double> held_;  // By documents.
};

}  // namespace longview::server
