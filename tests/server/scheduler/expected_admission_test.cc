// Admission of requests whose cost is not known yet.
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/scheduler/expected_work.h"
#include "server/scheduler/scheduler.h"
#include "tests/support/fake_clock.h"

namespace longview::server {
namespace {

class DoorTest : public ::testing::Test {
 protected:
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.max_queue_seconds = 10;
    options.batch_seconds = 1;
    options.slack_seconds = 1;
    options.nested_share = 0;
    return options;
  }

  // `due`: its deadline in seconds from the present.
  Ticket Make(double seconds, std::string client = "a", std::optional<double> due = {}) {
    Ticket ticket{.id = ++last_id_, .model = 1, .client = std::move(client), .seconds = seconds};
    if (due) ticket.deadline = clock_.Now() + absl::Seconds(*due);
    return ticket;
  }
  void Fill(double seconds, const std::string& client = "a") {
    ASSERT_EQ(scheduler_.Admit(Make(seconds, client)).verdict, Verdict::kAdmitted);
  }
  Verdict Expect(double seconds, std::string client = "a", std::optional<double> due = {}) {
    return scheduler_.Expect(Make(seconds, std::move(client), due)).verdict;
  }

  testing::FakeClock clock_;
  Scheduler scheduler_{Options(), clock_};
  TicketId last_id_ = 0;
};

TEST_F(DoorTest, ExpectedWorkCountsUntilItIsKnown) {
  Ticket ticket = Make(2);
  ASSERT_EQ(scheduler_.Expect(ticket).verdict, Verdict::kAdmitted);
  EXPECT_EQ(scheduler_.GaugesOf(1).queued_seconds, 2);
  EXPECT_EQ(scheduler_.WorkSeconds(), 2);
  EXPECT_EQ(scheduler_.Judge(Make(1)).wait_seconds, 2);
  ticket.seconds = 3;
  ASSERT_EQ(scheduler_.Admit(ticket).verdict, Verdict::kAdmitted);
  EXPECT_EQ(scheduler_.GaugesOf(1).queued_seconds, 3);
  EXPECT_EQ(scheduler_.WorkSeconds(), 3);
  EXPECT_EQ(scheduler_.Judge(Make(1)).wait_seconds, 3);
}

TEST_F(DoorTest, FullQueueRefusesAsItDoesOthers) {
  Fill(6);
  Fill(3.5);
  EXPECT_EQ(Expect(0.5), Verdict::kAdmitted);
  const Admission refused = scheduler_.Expect(Make(0.25));
  EXPECT_EQ(refused.verdict, Verdict::kQueueFull);
  EXPECT_DOUBLE_EQ(refused.need, 10.25);
  EXPECT_DOUBLE_EQ(refused.limit, 10);
  ASSERT_TRUE(refused.retry_after.has_value());
  EXPECT_EQ(*refused.retry_after, absl::Seconds(0.25));
  EXPECT_EQ(scheduler_.Gauges().queued_requests, 3);
}

TEST_F(DoorTest, NothingKnownIsLetIn) {
  Fill(10);
  EXPECT_EQ(Expect(0), Verdict::kAdmitted);
}

TEST_F(DoorTest, WhatIsExpectedCountsNoMoreThanWhatIsKnown) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Expect(100), Verdict::kAdmitted) << i;
  Fill(5);
  EXPECT_EQ(Expect(100), Verdict::kAdmitted);
  Fill(0.5);
  EXPECT_EQ(Expect(100), Verdict::kQueueFull);
}

TEST_F(DoorTest, ExpectedWorkRefusesNobodyWhoseCostIsKnown) {
  for (int i = 0; i < 20; ++i) Expect(100);
  Fill(6);
  Fill(4);
  EXPECT_EQ(scheduler_.Admit(Make(0.5)).verdict, Verdict::kQueueFull);
}

TEST_F(DoorTest, ClientThatMayDisplaceIsLetInAndDisplacesOnceItsCostIsKnown) {
  for (int i = 0; i < 10; ++i) Fill(1, "flood");
  ASSERT_EQ(Expect(1, "flood"), Verdict::kQueueFull);
  Ticket small = Make(1, "small");
  const Admission expected = scheduler_.Expect(small);
  ASSERT_EQ(expected.verdict, Verdict::kAdmitted);
  EXPECT_TRUE(expected.displaced.empty());
  small.seconds = 1.5;
  const Admission admitted = scheduler_.Admit(small);
  ASSERT_EQ(admitted.verdict, Verdict::kAdmitted);
  EXPECT_EQ(admitted.displaced, std::vector<TicketId>({10, 9}));
}

TEST_F(DoorTest, WhatAClientIsExpectedToTakeCountsAsItsOwn) {
  for (int i = 0; i < 10; ++i) Fill(1, "flood");
  int let_in = 0;
  for (int i = 0; i < 20; ++i) let_in += Expect(1, "small") == Verdict::kAdmitted;
  EXPECT_EQ(let_in, 9);  // Until it would have as much as is left of the flood.
}

TEST_F(DoorTest, FloodOfUnknownCostKeepsNobodyElseOut) {
  for (int i = 0; i < 6; ++i) Fill(1, "flood");
  while (Expect(1, "flood") == Verdict::kAdmitted) ASSERT_LT(last_id_, 20u);
  EXPECT_EQ(Expect(1, "small"), Verdict::kAdmitted);
}

TEST_F(DoorTest, DeadlineIsRefusedForWhatIsKnown) {
  EXPECT_EQ(Expect(100, "a", 1), Verdict::kAdmitted);  // It may well be a small one.
  Fill(3);
  EXPECT_EQ(Expect(0, "a", 2.5), Verdict::kAdmitted);  // More urgent than what waits.
  ASSERT_TRUE(scheduler_.NextBatch().has_value());
  const Admission late = scheduler_.Expect(Make(0, "a", 2.5));
  EXPECT_EQ(late.verdict, Verdict::kTooLate);
  EXPECT_DOUBLE_EQ(late.need, 3);
  EXPECT_DOUBLE_EQ(late.limit, 2.5);
  EXPECT_EQ(Expect(100, "a", 5), Verdict::kTooLate);  // As long again as its wait.
  EXPECT_EQ(Expect(100, "a", 6.5), Verdict::kAdmitted);
  EXPECT_EQ(Expect(1, "a", 4.5), Verdict::kAdmitted);
}

TEST_F(DoorTest, NothingIsLeftOfWhatWasCancelledOrExpired) {
  Ticket cancelled = Make(0.125, "a"), expired = Make(0.25, "b", 1);
  scheduler_.Expect(cancelled);
  scheduler_.Expect(expired);
  EXPECT_EQ(scheduler_.Cancel(cancelled.id), CancelOutcome::kRemoved);
  EXPECT_EQ(scheduler_.WorkSeconds(), 0.25);
  clock_.Advance(1.1);
  EXPECT_EQ(scheduler_.Expire().size(), 1u);
  EXPECT_EQ(scheduler_.WorkSeconds(), 0);
  EXPECT_EQ(scheduler_.remembered(), 0u);
}

TEST(ExpectedWorkTest, SumsByClient) {
  ExpectedWork work;
  work.Add(1, "a", 0.1);
  work.Add(2, "b", 0.2);
  work.Add(3, "a", 0.3);
  EXPECT_DOUBLE_EQ(work.seconds(), 0.6);
  EXPECT_DOUBLE_EQ(work.OfClient("a"), 0.4);
  work.Remove(3);
  EXPECT_DOUBLE_EQ(work.OfClient("a"), 0.1);
  work.Remove(1);
  work.Remove(2);
  EXPECT_EQ(work.seconds(), 0);
  EXPECT_EQ(work.OfClient("a"), 0);
  EXPECT_EQ(work.size(), 0u);
}

}  // namespace
}  // namespace longview::server
