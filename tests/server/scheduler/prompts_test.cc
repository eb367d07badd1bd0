// Prompts that wait: the bound of the queue, its gauges and its waits; and what goes between the
// slices of a task.
#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "tests/server/scheduler/step_device.h"

namespace longview::server {
namespace {

constexpr int kSecond = 10000;  // Tokens that are read in it.

SchedulerOptions Bounded(double seconds) {
  SchedulerOptions options;
  options.max_queue_seconds = seconds;
  return options;
}

TEST(PromptsTest, PromptsOfStartedTicketsCountInTheBound) {
  StepDevice device(Bounded(1));
  ASSERT_EQ(device.Admit(device.MakeCall(1, "a", 2 * kSecond, 1)), Verdict::kAdmitted);
  for (int i = 0; i < 3; ++i) device.Turn();
  // One is read, as a batch that runs is.
  ASSERT_EQ(device.Admit(device.MakeCall(2, "a", 2 * kSecond, 1)), Verdict::kAdmitted);
  for (int i = 0; i < 3; ++i) device.Turn();
  EXPECT_EQ(device.scheduler.Gauges().queued_requests, 0) << "the second has not started";
  const Admission refused = device.scheduler.Admit(device.MakeCall(3, "a", 2 * kSecond, 1).ticket);
  EXPECT_EQ(refused.verdict, Verdict::kQueueFull);
  EXPECT_GT(refused.need, 3.3);
  EXPECT_LT(refused.need, 4);
  EXPECT_EQ(refused.limit, 1);
  ASSERT_TRUE(refused.retry_after);
  EXPECT_NEAR(absl::ToDoubleSeconds(*refused.retry_after), refused.need - 1, 1e-6);
  // Nor a short one, as little as it is: the queue is full.
  EXPECT_EQ(device.Admit(device.MakeCall(4, "a", 16, 1)), Verdict::kQueueFull);
  while (!device.calls.at(1).over) ASSERT_TRUE(device.Turn());
  EXPECT_EQ(device.Admit(device.MakeCall(5, "a", 2 * kSecond, 1)), Verdict::kAdmitted);
  device.Drain(10000);
}

TEST(PromptsTest, OneAtATimeIsNeverRefused) {
  StepDevice device(Bounded(0.5));
  for (TicketId id = 1; id <= 3; ++id) {
    ASSERT_EQ(device.Admit(device.MakeCall(id, "a", 60 * kSecond, 1)), Verdict::kAdmitted);
    device.Turn();
    device.Turn();
    // Nor are short ones beside it.
    ASSERT_EQ(device.Admit(device.MakeCall(10 * id, "b", 100, 1)), Verdict::kAdmitted);
    device.Drain(100000);
  }
}

TEST(PromptsTest, WhoOnlyDecodesDoesNotWait) {
  StepDevice device(Bounded(0.5));
  for (TicketId id = 1; id <= 40; ++id) {
    // A second each, of which a hundredth is the prompt.
    ASSERT_EQ(device.Admit(device.MakeCall(id, "a", 100, 1000)), Verdict::kAdmitted) << id;
  }
  for (int i = 0; i < 100; ++i) device.Turn();
  EXPECT_EQ(device.scheduler.Gauges().queued_seconds, 0);
  EXPECT_EQ(device.scheduler.Judge(device.MakeCall(99, "b", 100, 1).ticket).verdict,
            Verdict::kAdmitted);
  device.Drain(100000);
}

// Between their arrival and the next membership turn they are in the line with all they take.
TEST(PromptsTest, WhoGeneratesKeepsNoShortWorkOutBeforeItStarts) {
  StepDevice device(Bounded(0.5));
  for (TicketId id = 1; id <= 20; ++id) {
    ASSERT_EQ(device.Admit(device.MakeCall(id, "streams", 10, 20'000)), Verdict::kAdmitted) << id;
  }
  Ticket shorts;
  shorts.client = "shorts";
  shorts.seconds = 0.01;
  shorts.id = 100;
  EXPECT_EQ(device.scheduler.Admit(shorts).verdict, Verdict::kAdmitted);
}

TEST(PromptsTest, WhoCannotStartYetHoldsOthersUp) {
  SchedulerOptions options = Bounded(0.5);
  options.max_generating = 1;
  StepDevice device(options);
  ASSERT_EQ(device.Admit(device.MakeCall(1, "a", 10, 20'000)), Verdict::kAdmitted);
  for (int i = 0; i < 3; ++i) device.Turn();
  ASSERT_EQ(device.Admit(device.MakeCall(2, "a", 10, 20'000)), Verdict::kAdmitted);
  Ticket shorts;
  shorts.client = "a";
  shorts.seconds = 0.01;
  shorts.id = 100;
  EXPECT_EQ(device.scheduler.Admit(shorts).verdict, Verdict::kQueueFull);
}

TEST(PromptsTest, GaugesSayWhatIsNotRead) {
  StepDevice device(Bounded(100));
  for (TicketId id = 1; id <= 4; ++id) {
    device.Admit(device.MakeCall(id, "a", 2 * kSecond, 1, /*model=*/1 + id % 2));
  }
  for (int i = 0; i < 5; ++i) device.Turn();
  const double left =
      device.calls.at(1).need.prompt_seconds + device.calls.at(2).need.prompt_seconds +
      device.calls.at(3).need.prompt_seconds + device.calls.at(4).need.prompt_seconds;
  const double both =
      device.scheduler.GaugesOf(1).queued_seconds + device.scheduler.GaugesOf(2).queued_seconds;
  EXPECT_DOUBLE_EQ(device.scheduler.Gauges().queued_seconds, both);
  // Every prompt waits but the one that is read.
  EXPECT_LE(both, left - 1.5);
  EXPECT_GE(both, left - 2.1);
  while (!device.calls.at(1).over || !device.calls.at(2).over) ASSERT_TRUE(device.Turn());
  device.Drain(10000);
  EXPECT_EQ(device.scheduler.Gauges().queued_seconds, 0);
}

TEST(PromptsTest, TheWaitIsThatOfThePromptsBefore) {
  SchedulerOptions options = Bounded(100);
  options.patience = absl::Seconds(1);
  StepDevice device(options);
  for (TicketId id = 1; id <= 4; ++id) device.Admit(device.MakeCall(id, "a", 2 * kSecond, 1));
  for (int i = 0; i < 4; ++i) device.Turn();
  const Ticket mine = device.MakeCall(10, "a", 100, 1).ticket;
  const double wait = device.scheduler.Judge(mine).wait_seconds;
  EXPECT_GE(wait, 5.5);
  EXPECT_LE(wait, 8.1);
  Ticket late = mine;
  late.deadline = device.clock.Now() + absl::Seconds(3);
  EXPECT_EQ(device.scheduler.Judge(late).verdict, Verdict::kTooLate);
  // A ticket that is due before their patience ends goes first.
  late.deadline = device.clock.Now() + absl::Seconds(0.5);
  EXPECT_EQ(device.scheduler.Judge(late).verdict, Verdict::kAdmitted);
  // The client that had less has the next turn.
  Ticket other = device.MakeCall(11, "b", 100, 1).ticket;
  other.deadline = device.clock.Now() + absl::Seconds(1);
  EXPECT_EQ(device.scheduler.Judge(other).verdict, Verdict::kAdmitted);
  SimulatedCall short_one = device.MakeCall(11, "b", 100, 1);
  ASSERT_EQ(device.Admit(short_one), Verdict::kAdmitted);
  const double before = device.now();
  while (!device.calls.at(11).over) ASSERT_TRUE(device.Turn());
  EXPECT_LE(device.now() - before, 0.6);
  device.Drain(10000);
}

TEST(PromptsTest, WhoHasLessDisplacesPromptsThatHaveNotStarted) {
  StepDevice device(Bounded(3));
  TicketId id = 0;
  while (device.Admit(device.MakeCall(++id, "a", kSecond, 1)) == Verdict::kAdmitted) {
    for (int i = 0; i < 2; ++i) device.Turn();
    ASSERT_LT(id, 20u);
  }
  EXPECT_EQ(device.Admit(device.MakeCall(100, "a", kSecond, 1)), Verdict::kQueueFull);
  const Admission admitted = device.scheduler.Admit(device.MakeCall(101, "b", kSecond, 1).ticket);
  EXPECT_EQ(admitted.verdict, Verdict::kAdmitted);
  ASSERT_EQ(admitted.displaced.size(), 1u);
  EXPECT_EQ(device.calls.at(admitted.displaced[0]).sampled, 0);
}

TEST(PromptsTest, BatchesAndPromptsDoNotFillEachOthersQueues) {
  StepDevice device(Bounded(1));
  for (TicketId id = 1; id <= 3; ++id) device.AdmitBatch(id, 0.3, 2, 3, "a");
  EXPECT_EQ(device.Admit(device.MakeCall(10, "a", kSecond / 2, 1)), Verdict::kAdmitted);
  EXPECT_EQ(device.Admit(device.MakeCall(11, "a", kSecond / 4, 1)), Verdict::kAdmitted);
  EXPECT_EQ(device.Admit(device.MakeCall(12, "a", kSecond / 2, 1)), Verdict::kQueueFull);
  device.Drain(10000);
}

// Floods of prompts: what the queue refuses, and what it takes, against what all of them have left.
class PromptFloodTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(PromptFloodTest, WaitingPromptsNeverExceedTheBound) {
  constexpr double kBound = 2;
  StepDevice device(Bounded(kBound));
  std::mt19937_64 random(GetParam());
  TicketId id = 0;
  int refused = 0, admitted = 0;
  while (device.now() < 120) {
    for (int i = 0; i < 3; ++i) {
      double all = 0, longest = 0;
      int open = 0;
      for (const auto& [other, call] : device.calls) {
        if (call.over) continue;
        ++open;
        all += call.need.prompt_seconds;
        longest = std::max(longest, call.need.prompt_seconds);
      }
      if (open > 200) break;
      const int prompt = 16 + static_cast<int>(random() % (random() % 4 == 0 ? 12000 : 2000));
      SimulatedCall call = device.MakeCall(++id, "client " + std::to_string(random() % 4), prompt,
                                           1 + static_cast<int>(random() % 30));
      const double own = call.ticket.prompt_seconds;
      const Admission admission = device.scheduler.Judge(call.ticket);
      if (device.Admit(call) == Verdict::kQueueFull) {
        ++refused;
        EXPECT_GT(all + own, kBound);
        EXPECT_TRUE(admission.retry_after);
        continue;
      }
      ++admitted;
      if (!admission.displaced.empty()) continue;
      EXPECT_LE(all + own - std::max(longest, own), std::max(kBound, own) + 1e-9);
    }
    for (int i = 0; i < 3; ++i) device.Turn();
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(admitted, 100);
  device.Drain(100000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PromptFloodTest, ::testing::Range(1u, 5u));

TEST(TaskTest, StepsGoBetweenItsSlices) {
  StepDevice device(Bounded(100));
  for (TicketId id = 1; id <= 5; ++id) device.Admit(device.MakeCall(id, "a", 16, 3000));
  for (int i = 0; i < 20; ++i) device.Turn();
  const int before = device.steps;
  device.largest_gap = 0;
  const double start = device.now();
  device.RunTask(0.25, 2, 400);
  EXPECT_GT(device.steps - before, 20);
  EXPECT_LE(device.largest_gap, device.stated + 1e-6);
  EXPECT_LE(device.stated, 0.1 + 1e-6);
  EXPECT_LE(device.now() - start, 4.2) << "steps have no more than the task";
  device.Drain(100000);
}

TEST(TaskTest, ShortBatchesGoBetweenItsSlicesAndLongOnesWait) {
  StepDevice device(Bounded(100));
  TicketId id = 0;
  bool asked = false;
  double ended = 0;
  device.at_slices = [&] {
    if (std::exchange(asked, true)) return;
    device.AdmitBatch(1000, 3, 2, 30, "long");
    for (int i = 0; i < 5; ++i) device.AdmitBatch(++id, 0.03, 3, 3, "short");
  };
  device.RunTask(0.25, 0.5, 100);
  ended = device.now();
  EXPECT_LT(device.batch_calls.at(1000).started, 0);
  for (TicketId each = 1; each <= id; ++each) {
    EXPECT_TRUE(device.batch_calls.at(each).nested) << each;
    EXPECT_LE(device.batch_calls.at(each).ended, ended);
  }
  device.Drain(1000);
  EXPECT_GE(device.batch_calls.at(1000).started, ended);
}

TEST(TaskTest, OthersHaveNoMoreThanHalfOfTheTime) {
  StepDevice device(Bounded(1000));
  TicketId id = 0;
  device.at_slices = [&] {
    while (device.scheduler.GaugesOf(3).queued_requests < 5) {
      device.AdmitBatch(++id, 0.02, 3, 2, "short");
    }
  };
  device.RunTask(0.25, 1, 200);
  EXPECT_GT(device.now(), 1.5);
  EXPECT_LE(device.now(), 2 + 0.1 + 0.1 + 1e-6) << "as long again, a batch in advance, and one";
}

}  // namespace
}  // namespace longview::server
