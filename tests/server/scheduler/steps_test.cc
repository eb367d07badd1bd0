// Generating tickets: the rules one by one, then two hundred random clients.
#include <random>

#include "tests/server/scheduler/step_device.h"

namespace longview::server {
namespace {

constexpr double kCeiling = 0.1;
constexpr double kRounding = 1e-6;

SchedulerOptions Options() {
  SchedulerOptions options;
  options.max_queue_seconds = 1e6;
  options.inter_token_seconds = kCeiling;
  return options;
}

TEST(StepsTest, StepTakesNextTokensFirstThenPrompts) {
  StepDevice device(Options());
  device.Admit(device.MakeCall(1, "a", 8, 100));
  device.Turn();  // Starts it.
  device.Turn();  // Reads the prompt whole: less than a chunk.
  EXPECT_EQ(device.calls.at(1).sampled, 1);
  device.Admit(device.MakeCall(2, "b", 10000, 10));  // A second of reading.
  device.Turn();
  device.scheduler.Expire();
  const std::optional<Batch> step = device.scheduler.NextBatch();
  ASSERT_TRUE(step);
  EXPECT_EQ(step->kind, TurnKind::kStep);
  EXPECT_EQ(step->tickets, (std::vector<TicketId>{1, 2}));
  EXPECT_EQ(step->prefill[0], 0);
  EXPECT_GT(step->prefill[1], 700);
  EXPECT_EQ(step->prefill[1] % 16, 0);
  EXPECT_LE(step->seconds, kCeiling);
}

TEST(StepsTest, LongPromptNeverStallsTokens) {
  StepDevice device(Options());
  for (TicketId id = 1; id <= 20; ++id) device.Admit(device.MakeCall(id, "a", 16, 500));
  for (int i = 0; i < 10; ++i) device.Turn();
  device.Admit(device.MakeCall(99, "b", 100000, 5));  // Ten seconds of reading.
  const double before = device.now();
  while (device.calls.at(99).sampled == 0) ASSERT_TRUE(device.Turn());
  EXPECT_LE(device.largest_gap, kCeiling + kRounding);
  // The long prompt gets what the others leave: they take 22 ms of 100.
  EXPECT_LT(device.now() - before, 10 / 0.7);
  device.Drain(10000);
}

TEST(StepsTest, PromptsAreCutWhereStepsTakeLongerThanPredicted) {
  StepDevice device(Options());
  device.slowness = 3;
  for (TicketId id = 1; id <= 5; ++id) device.Admit(device.MakeCall(id, "a", 16, 3000));
  device.Admit(device.MakeCall(99, "b", 100000, 5));
  for (int i = 0; i < 50; ++i) device.Turn();
  device.largest_gap = 0;
  for (int i = 0; i < 100; ++i) device.Turn();
  EXPECT_GT(device.calls.at(99).need.prefill, 0) << "the prompt is not being read any more";
  EXPECT_LE(device.largest_gap, 1.25 * kCeiling);
  EXPECT_GT(device.largest_gap, 0.5 * kCeiling);
}

TEST(StepsTest, SlowMachineGetsALongerCeilingInsteadOfNone) {
  StepDevice device(Options());
  SimulatedCall slow = device.MakeCall(1, "a", 64, 20);
  slow.need.decode_seconds = 0.15;
  slow.need.prefill_seconds = 0.01;
  SimulatedCall other = device.MakeCall(2, "b", 64, 20);
  other.need = slow.need;
  device.Admit(slow);
  device.Admit(other);
  device.Drain(1000);
  EXPECT_EQ(device.calls.at(1).sampled, 20);
  EXPECT_EQ(device.calls.at(2).sampled, 20);
  // Twice a step with one token and the smallest chunk.
  EXPECT_LE(device.largest_gap, 2 * (0.15 + 0.16 + 0.002) + kRounding);
}

TEST(StepsTest, TooManySequencesForTheCeilingWaitWithTheirPrompts) {
  StepDevice device(Options());
  for (TicketId id = 1; id <= 200; ++id) {  // 200 ms for a token each.
    device.Admit(device.MakeCall(id, "c" + std::to_string(id % 7), 32, 200));
  }
  device.Drain(20000);
  EXPECT_LE(device.largest_gap, kCeiling + kRounding);
  EXPECT_GT(device.largest_step, 0.09);
}

TEST(StepsTest, TooLargeIsRefusedAndWhatDoesNotFitYetWaits) {
  SchedulerOptions options = Options();
  options.memory_bytes = 1000;
  StepDevice device(options);
  EXPECT_EQ(device.Admit(device.MakeCall(1, "a", 900, 101)), Verdict::kTooLarge);
  EXPECT_EQ(device.Admit(device.MakeCall(2, "a", 500, 100)), Verdict::kAdmitted);
  EXPECT_EQ(device.Admit(device.MakeCall(3, "b", 400, 100)), Verdict::kAdmitted);
  EXPECT_EQ(device.Admit(device.MakeCall(4, "c", 200, 100)), Verdict::kAdmitted);
  device.Turn();
  EXPECT_EQ(device.scheduler.reserved_bytes(), 900);  // The third passes the second.
  EXPECT_EQ(device.scheduler.Gauges().queued_requests, 1);
  device.Drain(10000);
  EXPECT_EQ(device.most_bytes, 900);
}

TEST(StepsTest, WithoutMemoryForStateNothingGenerates) {
  SchedulerOptions options = Options();
  options.keeps_state = false;
  StepDevice device(options);
  EXPECT_EQ(device.Admit(device.MakeCall(1, "a", 16, 16)), Verdict::kTooLarge);
  Ticket batch;
  batch.id = 2;
  batch.seconds = 0.01;
  batch.bytes = 1e9;
  EXPECT_EQ(device.scheduler.Admit(batch).verdict, Verdict::kAdmitted);
}

TEST(StepsTest, PaceOfNeedsScalesWhatStepsArePlannedWith) {
  SchedulerOptions options = Options();
  RunningSet running_set(options.inter_token_seconds);
  Ticket ticket;
  ticket.id = 1;
  ticket.prefill_alignment = 16;
  ticket.step_seconds = 0.5;
  StepNeed need{.prefill = 64, .prefill_seconds = 0.01, .decode_seconds = 0.05};
  const absl::Time now = absl::UnixEpoch();
  running_set.Add(ticket, need, now, now);
  EXPECT_DOUBLE_EQ(running_set.Ceiling(), 2 * (0.5 + 0.05 + 0.16));
  // Warmed up beside others: everything is 25 times faster, and the ceiling comes down with it.
  need.pace = need.read_pace = 0.04;
  running_set.Update(1, need);
  EXPECT_DOUBLE_EQ(running_set.Ceiling(), options.inter_token_seconds);
  const Batch step = running_set.PlanFull(0, now, 1, [](const Ticket&) { return 0.0; });
  ASSERT_EQ(step.prefill.size(), 1u);
  EXPECT_EQ(step.prefill[0], 64);
  EXPECT_NEAR(step.seconds, 0.04 * (0.5 + 0.64), 1e-9);
}

TEST(StepsTest, QueueIsBoundedForThoseThatDoNotFit) {
  SchedulerOptions options = Options();
  options.memory_bytes = 10000;
  options.max_queue_seconds = 1;
  StepDevice device(options);
  TicketId id = 0;
  for (int i = 0; i < 50; ++i) {  // A burst of 10 seconds that fits.
    EXPECT_EQ(device.Admit(device.MakeCall(++id, "a", 16, 184)), Verdict::kAdmitted);
  }
  EXPECT_EQ(device.Admit(device.MakeCall(++id, "a", 16, 184)), Verdict::kQueueFull);
  device.Drain(20000);
  EXPECT_EQ(device.most_bytes, 10000);
}

TEST(StepsTest, PatientTicketIsNotOvertakenForEver) {
  SchedulerOptions options = Options();
  options.memory_bytes = 1000;
  options.patience = absl::Seconds(1);
  StepDevice device(options);
  TicketId id = 10;
  for (int i = 0; i < 6; ++i) device.Admit(device.MakeCall(++id, "small", 50, 100));
  device.Turn();
  device.Admit(device.MakeCall(1, "large", 850, 100));
  // A stream of small ones that would fit for ever.
  for (int turn = 0; turn < 20000 && device.calls.at(1).sampled == 0; ++turn) {
    if (device.scheduler.Gauges().queued_requests < 4) {
      device.Admit(device.MakeCall(++id, "small", 50, 100));
    }
    ASSERT_TRUE(device.Turn());
  }
  EXPECT_GT(device.calls.at(1).sampled, 0);
  EXPECT_LT(device.now(), 3);
}

TEST(StepsTest, ManySequencesOfOneTicketBeginThoughSmallTicketsGoOnComing) {
  SchedulerOptions options = Options();
  options.patience = absl::Seconds(1);
  StepDevice device(options);
  TicketId id = 10;
  const auto feed = [&] {
    const auto open = std::count_if(device.calls.begin(), device.calls.end(),
                                    [](const auto& call) { return !call.second.over; });
    for (auto i = open; i < 100; ++i) device.Admit(device.MakeCall(++id, "small", 16, 50));
  };
  feed();
  while (device.now() < 2) {
    feed();
    ASSERT_TRUE(device.Turn());
  }
  SimulatedCall many = device.MakeCall(1, "many", 16, 10);
  many.need.decode_seconds = 0.05;
  device.Admit(many);
  const double start = device.now();
  while (device.calls.at(1).sampled == 0 && device.now() < start + 60) {
    feed();
    ASSERT_TRUE(device.Turn());
  }
  EXPECT_LT(device.now() - start, 20);
}

TEST(StepsTest, PromptsThatBeganGoOnWhereDecodingAloneTakesLongerThanTheCeiling) {
  RunningSet running_set(kCeiling);
  Ticket ticket;
  ticket.model = 1;
  ticket.prefill_alignment = 16;
  ticket.step_seconds = 2e-3;
  absl::Time now = absl::UnixEpoch();
  const auto plan = [&] {
    return running_set.PlanFull(1, now, 1, [](const Ticket&) { return 0.0; });
  };
  for (ticket.id = 1; ticket.id <= 60; ++ticket.id) {
    running_set.Add(ticket, {.prefill = 0, .decode_seconds = 1e-3}, now, now);
  }
  StepNeed reading{.prefill = 100000, .prefill_seconds = 1e-4, .decode_seconds = 1e-3};
  running_set.Add(ticket, reading, now, now);
  const TicketId reader = ticket.id;
  running_set.Stepped(1, now);
  const int before = plan().prefill.back();
  ASSERT_GT(before, 0);
  reading.prefill -= before;
  running_set.Update(reader, reading);
  // Everything takes three times as long from now on.
  for (TicketId id = 1; id < reader; ++id) {
    running_set.Update(id, {.decode_seconds = 1e-3, .pace = 3, .read_pace = 3});
  }
  reading.pace = reading.read_pace = 3;
  running_set.Update(reader, reading);
  running_set.Stepped(1, now);
  const Batch step = plan();
  EXPECT_EQ(step.tickets.back(), reader);
  EXPECT_GE(step.prefill.back(), 16);
  EXPECT_GT(step.seconds, kCeiling);
  EXPECT_LE(step.seconds, running_set.Ceiling() + kRounding);
}

TEST(StepsTest, DocumentsLeaveLessForAll) {
  SchedulerOptions options = Options();
  options.memory_bytes = 1000;
  StepDevice device(options);
  device.scheduler.Hold(7, 300);
  EXPECT_EQ(device.Admit(device.MakeCall(1, "a", 700, 100)), Verdict::kMemoryFull);
  EXPECT_EQ(device.Admit(device.MakeCall(2, "a", 400, 100)), Verdict::kAdmitted);
  EXPECT_EQ(device.Admit(device.MakeCall(3, "a", 500, 100)), Verdict::kAdmitted);
  device.Turn();
  // The second one waits for the first; then a document takes what it would have had.
  device.scheduler.Hold(8, 150);
  device.Turn();
  EXPECT_EQ(device.starved, 1);
  EXPECT_TRUE(device.calls.at(3).over);
  device.scheduler.Hold(7, 0);
  device.scheduler.Hold(8, 0);
  device.Drain(1000);
  EXPECT_EQ(device.calls.at(2).sampled, 100);
}

TEST(StepsTest, CancelledLeaveAtTheNextTurn) {
  StepDevice device(Options());
  for (TicketId id = 1; id <= 3; ++id) device.Admit(device.MakeCall(id, "a", 16, 1000));
  for (int i = 0; i < 5; ++i) device.Turn();
  device.Cancel(2);
  const int sampled = device.calls.at(2).sampled;
  device.Turn();
  EXPECT_TRUE(device.calls.at(2).over);
  EXPECT_EQ(device.calls.at(2).sampled, sampled);
  EXPECT_EQ(device.scheduler.Gauges().running_requests, 2);
  device.Drain(5000);
}

TEST(StepsTest, DeadlinePassesWhileItRuns) {
  StepDevice device(Options());
  SimulatedCall call = device.MakeCall(1, "a", 16, 1000);
  call.ticket.seconds = 0.1;  // Predicted far too short.
  call.ticket.deadline = device.clock.Now() + absl::Seconds(0.5);
  ASSERT_EQ(device.Admit(call), Verdict::kAdmitted);
  device.Drain(5000);
  EXPECT_TRUE(device.calls.at(1).cancelled);
  EXPECT_GT(device.calls.at(1).sampled, 100);
  EXPECT_LT(device.now(), 0.51);
}

TEST(StepsTest, BatchIsInterruptedForTokens) {
  StepDevice device(Options());
  device.Admit(device.MakeCall(1, "a", 16, 100000));
  for (int i = 0; i < 5; ++i) device.Turn();
  device.AdmitBatch(1000, 3.0, 2, 100);  // Three seconds, 30 ms a layer.
  while (device.batches == 0) ASSERT_TRUE(device.Turn());
  EXPECT_LE(device.largest_gap, kCeiling + kRounding);
  // Steps get as much time as the batch, no more.
  EXPECT_LE(device.longest_batch, 6.1);
  EXPECT_GT(device.longest_batch, 5.0);
}

TEST(StepsTest, PromptIsReadWhileALongBatchRuns) {
  StepDevice device(Options());
  device.AdmitBatch(1000, 3.0, 2, 100);
  device.scheduler.Expire();
  ASSERT_TRUE(device.scheduler.NextBatch());
  device.clock.Advance(0.5);
  device.Admit(device.MakeCall(1, "a", 512, 1000));
  const std::optional<Batch> turn = device.scheduler.Interrupt(0.03);
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->kind, TurnKind::kMembership);
  const std::vector<StepOutcome> started = {{.id = 1, .need = device.calls.at(1).need}};
  device.scheduler.Finish(started);
  const std::optional<Batch> step = device.scheduler.Interrupt(0.03);
  ASSERT_TRUE(step);
  EXPECT_GT(step->prefill[0], 0);
}

TEST(StepsTest, ModelsShareTheDeviceByWhatTheirTurnsCost) {
  // A model that reads prompts for ever, and one whose batches never end.
  StepDevice device(Options());
  TicketId id = 0;
  double batch_seconds = 0;
  while (device.now() < 60) {
    while (device.scheduler.GaugesOf(1).queued_requests < 2) {
      device.Admit(device.MakeCall(++id, "reader", 5000, 1, 1));
    }
    while (device.scheduler.GaugesOf(2).queued_requests < 2) {
      device.AdmitBatch(1000000 + ++id, 0.08, 2, 10);
      batch_seconds += 0.08;
    }
    ASSERT_TRUE(device.Turn());
  }
  EXPECT_NEAR(batch_seconds / device.now(), 0.5, 0.1);
}

TEST(StepsTest, ClientsShareStepsWhateverTheyAskFor) {
  SchedulerOptions options = Options();
  StepDevice device(options);
  TicketId id = 0;
  std::map<std::string, double> served;
  std::map<std::string, int> waiting;
  const auto feed = [&] {
    waiting.clear();
    for (const auto& [ticket, call] : device.calls) {
      if (!call.over) ++waiting[call.ticket.client];
    }
    while (waiting["many"] < 20) {  // Twenty prompts at a time against three.
      device.Admit(device.MakeCall(++id, "many", 2000, 2));
      ++waiting["many"];
    }
    while (waiting["few"] < 3) {
      device.Admit(device.MakeCall(++id, "few", 2000, 2));
      ++waiting["few"];
    }
  };
  while (device.now() < 100) {
    feed();
    ASSERT_TRUE(device.Turn());
    std::erase_if(device.calls, [&](const auto& item) {
      if (!item.second.over) return false;
      served[item.second.ticket.client] += item.second.served;
      return true;
    });
  }
  EXPECT_GT(served["few"], 0.8 * served["many"]);
}

// Two hundred clients, three generating models and batches of a fourth; everybody joins, leaves
// and vanishes at random.
class StepsStormTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(StepsStormTest, CeilingMemoryAndEveryTicketHold) {
  SchedulerOptions options = Options();
  options.memory_bytes = 40000;
  StepDevice device(options);
  std::mt19937_64 random(GetParam());
  TicketId id = 0;
  std::vector<TicketId> open;
  int cancelled = 0;
  double next_arrival = 0;
  while (device.now() < 120) {
    while (next_arrival < device.now()) {
      next_arrival += std::exponential_distribution<>(25)(random);
      const std::string client = "client " + std::to_string(random() % 200);
      const int prompt = 1 + static_cast<int>(random() % (random() % 10 == 0 ? 8000 : 300));
      SimulatedCall call = device.MakeCall(++id, client, prompt, 1 + random() % 80,
                                           1 + static_cast<ModelId>(random() % 3));
      if (random() % 5 == 0) {
        call.ticket.deadline = device.clock.Now() + absl::Seconds(0.1 + 0.001 * (random() % 5000));
      }
      if (random() % 20 == 0) {
        call.document = 1 + random() % 5;
        call.tokens = 1;
      }
      if (device.Admit(call) == Verdict::kAdmitted) open.push_back(id);
      if (random() % 40 == 0) device.CloseDocument(1 + random() % 5);
    }
    if (random() % 20 == 0) device.AdmitBatch(10000000 + ++id, 0.05 * (1 + random() % 8), 9, 20);
    if (random() % 4 == 0 && !open.empty()) {
      const size_t which = random() % open.size();
      const SimulatedCall& call = device.calls.at(open[which]);
      if (!call.over && !call.cancelled) {
        device.Cancel(open[which]);
        ++cancelled;
      }
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    }
    if (!device.Turn()) device.clock.Advance(0.001);
  }
  for (uint64_t key = 1; key <= 5; ++key) device.CloseDocument(key);
  while (device.Turn()) {
  }
  for (uint64_t key = 1; key <= 5; ++key) device.CloseDocument(key);
  device.ExpectNothingLeft();
  EXPECT_LE(device.largest_gap, device.stated + kRounding);
  EXPECT_LE(device.stated, 2 * kCeiling);
  EXPECT_LE(device.most_bytes, options.memory_bytes);
  EXPECT_GT(device.most_bytes, options.memory_bytes / 2);
  EXPECT_GT(cancelled, 100);
  EXPECT_GT(device.sampled, 10000);
  EXPECT_GT(device.batches, 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StepsStormTest, ::testing::Range(1u, 7u));

}  // namespace
}  // namespace longview::server
