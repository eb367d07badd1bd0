// The scheduler's rules, one by one.
#include "server/scheduler/scheduler.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace longview::server {
namespace {

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest() {
    options_.max_queue_seconds = 10;
    options_.batch_seconds = 1;
    options_.slack_seconds = 1;
    options_.memory_bytes = 1000;
    Reset();
  }

  void Reset() { scheduler_ = std::make_unique<Scheduler>(options_, clock_); }

  // Deadline in seconds from the present; 0 = none.
  static Ticket Make(TicketId id, double seconds, std::string client = "a", ModelId model = 1) {
    return {.id = id, .model = model, .client = std::move(client), .seconds = seconds};
  }
  Ticket MakeDue(TicketId id, double seconds, double due, std::string client = "a") {
    Ticket ticket = Make(id, seconds, std::move(client));
    ticket.deadline = clock_.Now() + absl::Seconds(due);
    return ticket;
  }
  Verdict Admit(const Ticket& ticket) { return scheduler_->Admit(ticket).verdict; }
  std::vector<TicketId> Run() {
    scheduler_->Expire();
    const std::optional<Batch> batch = scheduler_->NextBatch();
    return batch ? batch->tickets : std::vector<TicketId>{};
  }
  // Runs the next batch for as long as it was predicted to take.
  std::vector<TicketId> RunAndFinish() {
    scheduler_->Expire();
    const std::optional<Batch> batch = scheduler_->NextBatch();
    if (!batch) return {};
    clock_.Advance(batch->seconds);
    scheduler_->Finish();
    return batch->tickets;
  }
  using Ids = std::vector<TicketId>;

  SchedulerOptions options_;
  testing::FakeClock clock_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, IdleDeviceIsDispatchedAtOnceBusyOneAccumulates) {
  ASSERT_EQ(Admit(Make(1, 0.1)), Verdict::kAdmitted);
  EXPECT_EQ(Run(), Ids({1}));
  Admit(Make(2, 0.1));
  Admit(Make(3, 0.1));
  EXPECT_EQ(Run(), Ids());  // Busy.
  clock_.Advance(0.1);
  scheduler_->Finish();
  EXPECT_EQ(Run(), Ids({2, 3}));
}

TEST_F(SchedulerTest, BatchIsBoundedInWorkNotInCount) {
  for (int i = 1; i <= 6; ++i) Admit(Make(i, 0.4));
  Admit(Make(7, 3));
  EXPECT_EQ(RunAndFinish(), Ids({1, 2}));
  EXPECT_EQ(RunAndFinish(), Ids({3, 4}));
  EXPECT_EQ(RunAndFinish(), Ids({5, 6}));
  EXPECT_EQ(RunAndFinish(), Ids({7}));  // Larger than the budget: alone.
}

TEST_F(SchedulerTest, BatchGrowsWithWhatWaits) {
  constexpr double kSixteenth = 0.0625;
  options_.batch_seconds = 2 * kSixteenth;
  options_.full_batch_seconds = 8 * kSixteenth;
  Reset();
  // Little waits: a batch stays short.
  for (int i = 1; i <= 3; ++i) Admit(Make(i, kSixteenth));
  EXPECT_EQ(RunAndFinish(), Ids({1, 2}));
  EXPECT_EQ(RunAndFinish(), Ids({3}));
  // Half of twelve, then of what is left.
  for (int i = 11; i <= 22; ++i) Admit(Make(i, kSixteenth));
  EXPECT_EQ(RunAndFinish().size(), 6u);
  EXPECT_EQ(RunAndFinish().size(), 3u);
  EXPECT_EQ(RunAndFinish().size(), 2u);
  EXPECT_EQ(RunAndFinish().size(), 1u);
  // Never more than the limit, however much waits.
  for (int i = 31; i <= 90; ++i) Admit(Make(i, kSixteenth));
  EXPECT_EQ(RunAndFinish().size(), 8u);
}

TEST_F(SchedulerTest, BatchHoldsOneModel) {
  Admit(Make(1, 0.1, "a", 1));
  Admit(Make(2, 0.1, "a", 2));
  Admit(Make(3, 0.1, "a", 1));
  EXPECT_EQ(RunAndFinish(), Ids({1, 3}));
  EXPECT_EQ(RunAndFinish(), Ids({2}));
}

TEST_F(SchedulerTest, ModelsTakeTurns) {
  for (int i = 1; i <= 8; ++i) Admit(Make(i, 1, "a", 1));
  clock_.Advance(0.001);
  Admit(Make(9, 1, "a", 2));
  int turns = 0;
  for (Ids ids = RunAndFinish(); ids != Ids({9}); ids = RunAndFinish()) ASSERT_LT(++turns, 3);
}

TEST_F(SchedulerTest, ClientsTakeTurnsWhoeverCameFirst) {
  options_.slack_seconds = 0;
  Reset();
  for (int i = 1; i <= 6; ++i) Admit(Make(i, 1, "first"));
  clock_.Advance(0.001);
  for (int i = 11; i <= 13; ++i) Admit(Make(i, 1, "second"));
  std::vector<TicketId> order;
  for (Ids ids = RunAndFinish(); !ids.empty(); ids = RunAndFinish()) order.push_back(ids[0]);
  EXPECT_EQ(order, Ids({1, 11, 2, 12, 3, 13, 4, 5, 6}));
}

TEST_F(SchedulerTest, WeightsGiveLargerShares) {
  options_.slack_seconds = 0;
  options_.max_queue_seconds = 100;
  Reset();
  for (int i = 1; i <= 30; ++i) {
    Ticket heavy = Make(i, 1, "heavy");
    heavy.weight = 3;
    Admit(heavy);
    Admit(Make(100 + i, 1, "light"));
  }
  int heavy = 0;
  for (int i = 0; i < 20; ++i) heavy += RunAndFinish().front() <= 30;
  EXPECT_NEAR(heavy, 15, 1);
}

TEST_F(SchedulerTest, EarliestDeadlineFirst) {
  Admit(Make(1, 1));
  Admit(MakeDue(2, 1, 8));
  Admit(MakeDue(3, 1, 4));
  EXPECT_EQ(RunAndFinish(), Ids({3}));
  EXPECT_EQ(RunAndFinish(), Ids({2}));
  EXPECT_EQ(RunAndFinish(), Ids({1}));
}

TEST_F(SchedulerTest, TicketWithoutDeadlineAges) {
  options_.patience = absl::Seconds(5);
  Reset();
  Admit(Make(1, 1));
  for (TicketId id = 2;; ++id) {
    ASSERT_LT(id, 10u) << "starved";
    Admit(MakeDue(id, 1, 4));
    if (RunAndFinish() == Ids({1})) break;
  }
}

TEST_F(SchedulerTest, QueueIsBoundedInSeconds) {
  ASSERT_EQ(Admit(Make(1, 2)), Verdict::kAdmitted);
  Run();
  ASSERT_EQ(Admit(Make(2, 6)), Verdict::kAdmitted);
  ASSERT_EQ(Admit(Make(3, 4)), Verdict::kAdmitted);
  const Admission refused = scheduler_->Admit(Make(4, 3));
  EXPECT_EQ(refused.verdict, Verdict::kQueueFull);
  EXPECT_DOUBLE_EQ(refused.need, 13);
  EXPECT_DOUBLE_EQ(refused.limit, 10);
  // The running batch takes 2 s more; then 3 s of the queue must have gone.
  ASSERT_TRUE(refused.retry_after.has_value());
  EXPECT_EQ(*refused.retry_after, absl::Seconds(5));
}

TEST_F(SchedulerTest, OneTicketAboveTheBoundMayWaitAlone) {
  EXPECT_EQ(Admit(Make(1, 50)), Verdict::kAdmitted);
  EXPECT_EQ(Admit(Make(2, 1)), Verdict::kQueueFull);
  EXPECT_EQ(Run(), Ids({1}));
}

TEST_F(SchedulerTest, FullQueueMakesRoomForAClientWithLess) {
  for (int i = 1; i <= 10; ++i) Admit(Make(i, 1, "flood"));
  ASSERT_EQ(Admit(Make(11, 1, "flood")), Verdict::kQueueFull);
  const Admission admission = scheduler_->Admit(Make(12, 1.5, "small"));
  ASSERT_EQ(admission.verdict, Verdict::kAdmitted);
  EXPECT_EQ(admission.displaced, Ids({10, 9}));  // The least urgent.
  EXPECT_LE(scheduler_->Gauges().queued_seconds, 10);
  EXPECT_EQ(scheduler_->Cancel(10), CancelOutcome::kUnknown);
  // Once it has its share it is refused like anybody.
  int admitted = 0;
  for (int i = 20; i < 40; ++i) admitted += Admit(Make(i, 1, "small")) == Verdict::kAdmitted;
  EXPECT_GE(admitted, 2);
  EXPECT_LE(admitted, 4);
}

TEST_F(SchedulerTest, DeadlineThatCannotBeMetIsRefusedAtOnce) {
  const Admission alone = scheduler_->Admit(MakeDue(1, 2, 1));
  EXPECT_EQ(alone.verdict, Verdict::kTooLate);
  EXPECT_FALSE(alone.retry_after.has_value());  // Waiting would not help.

  Admit(MakeDue(2, 3, 5));
  const Admission behind = scheduler_->Admit(MakeDue(3, 3, 5.5));
  EXPECT_EQ(behind.verdict, Verdict::kTooLate);
  EXPECT_DOUBLE_EQ(behind.wait_seconds, 3);
  EXPECT_DOUBLE_EQ(behind.need, 6);
  EXPECT_DOUBLE_EQ(behind.limit, 5.5);
  ASSERT_TRUE(behind.retry_after.has_value());
  EXPECT_EQ(*behind.retry_after, absl::Seconds(0.5));

  // More urgent than what waits: it goes first, so it is in time.
  EXPECT_EQ(Admit(MakeDue(4, 1, 1.5)), Verdict::kAdmitted);
  EXPECT_EQ(Run(), Ids({4}));
}

TEST_F(SchedulerTest, RunningBatchCountsAgainstADeadline) {
  Admit(Make(1, 3));
  Run();
  EXPECT_EQ(Admit(MakeDue(2, 1, 3.5)), Verdict::kTooLate);
  EXPECT_EQ(Admit(MakeDue(3, 1, 4.5)), Verdict::kAdmitted);
}

TEST_F(SchedulerTest, TicketLeavesAsSoonAsItsDeadlineIsOutOfReach) {
  Admit(Make(1, 2));
  ASSERT_EQ(Run(), Ids({1}));
  ASSERT_EQ(Admit(MakeDue(2, 1, 3.5)), Verdict::kAdmitted);  // Latest start: 2.5 s.
  EXPECT_TRUE(scheduler_->Expire().empty());
  EXPECT_EQ(scheduler_->NextExpiry(), clock_.Now() + absl::Seconds(2.5) + absl::Microseconds(1));
  clock_.Advance(2.5);  // The batch takes longer than predicted.
  EXPECT_TRUE(scheduler_->Expire().empty());
  clock_.AdvanceTo(scheduler_->NextExpiry());
  const std::vector<Departure> gone = scheduler_->Expire();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].id, 2u);
  EXPECT_FALSE(gone[0].was_running);
  EXPECT_EQ(scheduler_->GaugesOf(1).queued_requests, 0);
}

TEST_F(SchedulerTest, ABatchThatMakesOthersLateSaysSoAtOnce) {
  // Due in an order that one device cannot keep: each fits alone.
  Admit(MakeDue(1, 3, 3.9));
  ASSERT_EQ(Admit(MakeDue(2, 3, 6.5)), Verdict::kAdmitted);
  ASSERT_EQ(Admit(MakeDue(3, 0.8, 0.9)), Verdict::kAdmitted);
  ASSERT_EQ(RunAndFinish(), Ids({3}));
  ASSERT_EQ(Run(), Ids({1}));  // Until 3.8 s; 2 had to start at 3.5 s.
  EXPECT_EQ(scheduler_->NextExpiry(), clock_.Now());
  const std::vector<Departure> gone = scheduler_->Expire();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].id, 2u);
}

TEST_F(SchedulerTest, BatchDoesNotMakeAMemberLate) {
  Admit(MakeDue(1, 0.4, 0.5));
  Admit(Make(2, 0.4));
  EXPECT_EQ(RunAndFinish(), Ids({1}));
  EXPECT_EQ(RunAndFinish(), Ids({2}));
}

TEST_F(SchedulerTest, RunningTicketExpiresAtItsDeadline) {
  Admit(MakeDue(1, 0.4, 2));
  Admit(MakeDue(2, 0.4, 5));
  ASSERT_EQ(Run(), Ids({1, 2}));
  EXPECT_EQ(scheduler_->NextExpiry(), clock_.Now() + absl::Seconds(2) + absl::Microseconds(1));
  clock_.Advance(2.1);
  const std::vector<Departure> gone = scheduler_->Expire();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].id, 1u);
  EXPECT_TRUE(gone[0].was_running);
  EXPECT_EQ(scheduler_->TakeDrops(), Ids({1}));
  EXPECT_TRUE(scheduler_->TakeDrops().empty());
  EXPECT_TRUE(scheduler_->Wanted());
  EXPECT_EQ(scheduler_->Cancel(2), CancelOutcome::kRunning);
  EXPECT_EQ(scheduler_->Cancel(2), CancelOutcome::kUnknown);
  EXPECT_FALSE(scheduler_->Wanted());
  scheduler_->Finish();
  EXPECT_EQ(scheduler_->remembered(), 0u);
}

TEST_F(SchedulerTest, CancelledTicketNeverRuns) {
  Admit(Make(1, 0.1));
  Admit(Make(2, 0.1));
  EXPECT_EQ(scheduler_->Cancel(1), CancelOutcome::kRemoved);
  EXPECT_EQ(scheduler_->Cancel(1), CancelOutcome::kUnknown);
  EXPECT_EQ(scheduler_->Cancel(77), CancelOutcome::kUnknown);
  EXPECT_EQ(RunAndFinish(), Ids({2}));
  EXPECT_EQ(scheduler_->remembered(), 0u);
}

TEST_F(SchedulerTest, MemoryIsReservedPerBatch) {
  Ticket big = Make(1, 0.1);
  big.bytes = 700;
  Ticket other = Make(2, 0.1, "b");
  other.bytes = 400;
  Ticket small = Make(3, 0.1, "c");
  small.bytes = 200;
  Admit(big);
  Admit(other);
  Admit(small);
  EXPECT_EQ(RunAndFinish(), Ids({1, 3}));
  EXPECT_EQ(RunAndFinish(), Ids({2}));
}

TEST_F(SchedulerTest, LargerThanTheDeviceIsRefusedWithNeedAndLimit) {
  Ticket ticket = Make(1, 0.1);
  ticket.bytes = 1001;
  const Admission admission = scheduler_->Admit(ticket);
  EXPECT_EQ(admission.verdict, Verdict::kTooLarge);
  EXPECT_EQ(admission.need, 1001);
  EXPECT_EQ(admission.limit, 1000);
  EXPECT_FALSE(admission.retry_after.has_value());
}

TEST_F(SchedulerTest, ExpectedRequestsExpireAndCancel) {
  scheduler_->Expect(MakeDue(1, 0, 1));
  scheduler_->Expect(Make(2, 0));
  EXPECT_EQ(scheduler_->GaugesOf(1).queued_requests, 2);
  EXPECT_EQ(scheduler_->Cancel(2), CancelOutcome::kRemoved);
  clock_.Advance(1.1);
  const std::vector<Departure> gone = scheduler_->Expire();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].id, 1u);
  EXPECT_EQ(scheduler_->remembered(), 0u);
}

TEST_F(SchedulerTest, GaugesAreReadFromTheQueueItself) {
  scheduler_->Expect(Make(1, 0.25));
  Admit(Make(1, 0.75));
  Admit(Make(2, 0.5, "a", 2));
  EXPECT_EQ(scheduler_->GaugesOf(1).queued_requests, 1);
  EXPECT_EQ(scheduler_->GaugesOf(1).queued_seconds, 0.75);
  EXPECT_EQ(scheduler_->Gauges().queued_requests, 2);
  Run();
  EXPECT_EQ(scheduler_->GaugesOf(1).queued_requests, 0);
  EXPECT_EQ(scheduler_->GaugesOf(1).running_requests, 1);
  EXPECT_EQ(scheduler_->WorkSeconds(), 1.25);
  clock_.Advance(0.25);
  EXPECT_EQ(scheduler_->WorkSeconds(), 1.0);
}

TEST_F(SchedulerTest, StalledOnlyWhileWorkWaitsForAnIdleDevice) {
  clock_.Advance(100);
  EXPECT_EQ(scheduler_->Stalled(), absl::ZeroDuration());
  Admit(Make(1, 0.1));
  EXPECT_EQ(scheduler_->Stalled(), absl::ZeroDuration());
  clock_.Advance(20);
  EXPECT_EQ(scheduler_->Stalled(), absl::Seconds(20));
  Run();
  Admit(Make(2, 0.1));
  clock_.Advance(1000);  // A long batch is not a stall.
  EXPECT_EQ(scheduler_->Stalled(), absl::ZeroDuration());
}

}  // namespace
}  // namespace longview::server
