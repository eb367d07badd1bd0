// Several devices behind one queue: who takes what, what is promised, and what a loss leaves.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/server/scheduler/lane_world.h"

namespace longview::server {
namespace {

using End = LaneWorld::End;

SchedulerOptions Options(int lanes) {
  SchedulerOptions options;
  options.lanes = lanes;
  options.max_queue_seconds = 10;
  options.batch_seconds = 0.1;
  options.slack_seconds = 0.1;
  return options;
}

TEST(LanesTest, WhicheverIsFreeFirstTakesTheNext) {
  LaneWorld world(Options(2));
  world.Admit(world.Batched(1, 4));
  world.Admit(world.Batched(2, 1));
  world.Admit(world.Batched(3, 1));
  world.Admit(world.Batched(4, 1));
  world.RunUntil(4);
  EXPECT_EQ(world.CountOf(End::kDone), 4);
  EXPECT_EQ(world.calls.at(1).lane, 0);
  for (const TicketId id : {2, 3, 4}) EXPECT_EQ(world.calls.at(id).lane, 1) << id;
  world.ExpectNothingLeft();
}

TEST(LanesTest, LanesThatAreFreeShareABurst) {
  LaneWorld world(Options(4));
  for (TicketId id = 1; id <= 8; ++id) {
    ASSERT_EQ(world.scheduler.Admit(world.Batched(id, 0.01).ticket).verdict, Verdict::kAdmitted);
  }
  for (int lane = 0; lane < 4; ++lane) {
    const std::optional<Batch> batch = world.scheduler.NextBatch(lane);
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->tickets.size(), 2u) << lane;
  }
}

TEST(LanesTest, WaitsAreTheWorkInFrontDividedOverTheLanes) {
  LaneWorld world(Options(2));
  EXPECT_EQ(world.Admit(world.Batched(1, 4)).wait_seconds, 0);
  EXPECT_EQ(world.Admit(world.Batched(2, 1)).wait_seconds, 0);
  EXPECT_EQ(world.Admit(world.Batched(3, 1)).wait_seconds, 1);  // Behind the second.
  EXPECT_EQ(world.Admit(world.Batched(4, 4)).wait_seconds, 2);
  // Lanes are free after 4 and 1 s, and 5 s wait: both are at work until all of it is done.
  EXPECT_EQ(world.Admit(world.Batched(5, 1)).wait_seconds, 5);
  EXPECT_EQ(world.scheduler.WorkSeconds(), 11);
  world.RunUntil(20);
  for (const auto& [id, call] : world.calls) {
    EXPECT_LE(absl::ToDoubleSeconds(call.started - call.arrival), call.promised + 1e-6) << id;
  }
}

TEST(LanesTest, DeadlinesCountAllLanes) {
  LaneWorld world(Options(2));
  const auto due = [&](TicketId id, double seconds, double after) {
    LaneWorld::Call call = world.Batched(id, seconds);
    call.ticket.deadline = world.clock.Now() + absl::Seconds(after);
    return call;
  };
  world.Admit(world.Batched(1, 3));
  world.Admit(world.Batched(2, 2));
  EXPECT_EQ(world.Admit(due(3, 1, 2.9)).verdict, Verdict::kTooLate);
  EXPECT_EQ(world.Admit(due(4, 1, 3.1)).verdict, Verdict::kAdmitted);
  EXPECT_EQ(world.Admit(due(5, 1, 4.1)).verdict, Verdict::kAdmitted);
  world.RunUntil(5);
  EXPECT_EQ(world.CountOf(End::kDone), 4);
}

TEST(LanesTest, TheQueueHoldsAsMuchForEachLane) {
  for (const int lanes : {1, 3}) {
    LaneWorld world(Options(lanes));
    TicketId id = 0;
    for (int i = 0; i < lanes; ++i) world.Admit(world.Batched(++id, 1));
    for (int i = 0; i < 10 * lanes; ++i) {
      ASSERT_EQ(world.Admit(world.Batched(++id, 1)).verdict, Verdict::kAdmitted) << id;
    }
    const Admission refused = world.Admit(world.Batched(++id, 1));
    EXPECT_EQ(refused.verdict, Verdict::kQueueFull);
    EXPECT_EQ(refused.limit, 10 * lanes);
    EXPECT_EQ(refused.lanes, lanes);
    // All lanes work on the second that is too much.
    EXPECT_NEAR(absl::ToDoubleSeconds(*refused.retry_after), 1 + 1.0 / lanes, 1e-6);
  }
}

TEST(LanesTest, ClientsShareTheLanesTogether) {
  LaneWorld world(Options(3));
  TicketId id = 0;
  // One asks for ten times as much.
  for (int i = 0; i < 400; ++i) {
    for (int j = 0; j < 10; ++j) world.Admit(world.Batched(++id, 0.05, "flood"));
    world.Admit(world.Batched(++id, 0.05, "b"));
    world.Admit(world.Batched(++id, 0.05, "c"));
    world.RunUntil(0.03 * (i + 1));
  }
  const double all = world.served["flood"] + world.served["b"] + world.served["c"];
  EXPECT_GT(all, 0.97 * 3 * world.now());
  EXPECT_GT(world.served["b"], 0.9 * all / 3);
  EXPECT_GT(world.served["c"], 0.9 * all / 3);
}

TEST(LanesTest, GenerationsSpreadOutAndStayWhereTheyBegan) {
  SchedulerOptions options = Options(4);
  options.memory_bytes = 1e5;
  LaneWorld world(options);
  std::vector<int> started(4);
  for (TicketId id = 1; id <= 40; ++id) world.Admit(world.Generating(id, 100, 50));
  world.RunUntil(20);
  EXPECT_EQ(world.CountOf(End::kDone), 40);
  for (const auto& [id, call] : world.calls) ++started[static_cast<size_t>(call.lane)];
  for (const int count : started) EXPECT_NEAR(count, 10, 2);
  world.ExpectNothingLeft();
}

TEST(LanesTest, BatchesGoWhereNobodyGenerates) {
  LaneWorld world(Options(2));
  world.Admit(world.Generating(1, 100, 500));
  world.RunUntil(0.1);
  const int generating = world.calls.at(1).lane;
  for (TicketId id = 2; id < 6; ++id) {
    world.Admit(world.Batched(id, 0.05));
    world.RunUntil(world.now() + 0.06);
    EXPECT_EQ(world.calls.at(id).lane, 1 - generating) << id;
  }
}

TEST(LanesTest, ALaneThatStepsAsideLeavesTheOthersTheWork) {
  LaneWorld world(Options(2));
  world.scheduler.Yield(0);
  LaneWorld::Call call = world.Generating(1, 100, 5);
  ASSERT_EQ(world.scheduler.Admit(call.ticket).verdict, Verdict::kAdmitted);
  const std::optional<Batch> turn = world.scheduler.NextBatch(1);
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(turn->tickets, std::vector<TicketId>{1});
}

TEST(LanesTest, DocumentsArePinnedAndTheirBytesAreTheirLanes) {
  SchedulerOptions options = Options(2);
  options.memory_bytes = 1000;
  LaneWorld world(options);
  const int first = *world.scheduler.OpenDocument();
  const int second = *world.scheduler.OpenDocument();
  EXPECT_NE(first, second);
  LaneWorld::Call reading = world.Generating(1, 800, 0);
  reading.tokens = 1;
  reading.ticket.lane = first;
  reading.document = 77;
  world.Admit(reading);
  world.RunUntil(1);
  EXPECT_EQ(world.calls.at(1).lane, first);
  EXPECT_EQ(world.scheduler.held_bytes(first), 800);
  EXPECT_EQ(world.scheduler.held_bytes(second), 0);
  EXPECT_EQ(*world.scheduler.OpenDocument(), second) << "where most is free";

  // A fork finds no room on its lane, whatever the other has; anybody else goes there.
  LaneWorld::Call fork = world.Generating(2, 300, 1);
  fork.ticket.lane = first;
  const Admission refused = world.Admit(fork);
  EXPECT_EQ(refused.verdict, Verdict::kMemoryFull);
  EXPECT_EQ(refused.limit, 200);
  world.Admit(world.Generating(3, 300, 10));
  fork = world.Generating(4, 100, 10);
  fork.ticket.lane = first;
  world.Admit(fork);
  world.RunUntil(2);
  EXPECT_EQ(world.calls.at(3).lane, second);
  EXPECT_EQ(world.calls.at(4).lane, first);
  EXPECT_EQ(world.CountOf(End::kDone), 3);
  world.CloseDocument(77, first);
  world.CloseDocument(78, second);
  world.CloseDocument(79, second);
  world.ExpectNothingLeft();
}

TEST(LanesTest, APinnedTicketThatWaitsHoldsUpNobodyElse) {
  SchedulerOptions options = Options(2);
  options.memory_bytes = 1000;
  LaneWorld world(options);
  LaneWorld::Call large = world.Generating(1, 100, 800);
  large.ticket.lane = 0;
  world.Admit(large);
  LaneWorld::Call pinned = world.Generating(2, 100, 100);
  pinned.ticket.lane = 0;
  world.Admit(pinned);
  world.Admit(world.Generating(3, 100, 10));  // Behind it, with the same client and model.
  world.RunUntil(0.2);
  EXPECT_EQ(world.calls.at(2).lane, -1);
  EXPECT_EQ(world.calls.at(3).end, End::kDone);
  world.RunUntil(10);
  EXPECT_EQ(world.CountOf(End::kDone), 3);
  world.ExpectNothingLeft();
}

TEST(LanesTest, APatientLargeTicketIsStartedWhileSmallOnesComeForEver) {
  SchedulerOptions options = Options(2);
  options.memory_bytes = 1000;
  options.patience = absl::Seconds(1);
  LaneWorld world(options);
  TicketId id = 0;
  for (; id < 20; ++id) world.Admit(world.Generating(id + 1, 20, 180, "small"));
  const TicketId large = ++id;
  world.Admit(world.Generating(large, 100, 800, "large"));
  for (int i = 0; i < 60 && world.calls.at(large).lane < 0; ++i) {
    for (int j = 0; j < 4; ++j) world.Admit(world.Generating(++id, 20, 180, "small"));
    world.RunUntil(world.now() + 0.3);
  }
  EXPECT_GE(world.calls.at(large).lane, 0);
}

TEST(LanesTest, ALostDeviceFailsItsOwnAndTheOthersGoOn) {
  SchedulerOptions options = Options(2);
  options.memory_bytes = 1e4;
  LaneWorld world(options);
  const int document = *world.scheduler.OpenDocument();
  ASSERT_EQ(document, 0);
  world.Admit(world.Batched(1, 1));
  world.Admit(world.Batched(2, 1));
  world.Admit(world.Batched(3, 1));
  world.Admit(world.Generating(4, 100, 500));
  world.Admit(world.Generating(5, 100, 500));
  world.RunUntil(0.5);
  LaneWorld::Call pinned = world.Generating(6, 100, 9000);
  pinned.ticket.lane = 0;
  world.Admit(pinned);
  pinned = world.Generating(7, 100, 9000);  // No room beside the other: it waits.
  pinned.ticket.lane = 0;
  world.Admit(pinned);
  world.RunUntil(0.7);
  world.Break(0);
  world.RunUntil(20);
  EXPECT_EQ(world.calls.at(1).end, End::kFailed);
  EXPECT_EQ(world.calls.at(6).end, End::kFailed);
  EXPECT_EQ(world.calls.at(7).end, End::kLost);
  for (const TicketId id : {2, 3}) EXPECT_EQ(world.calls.at(id).end, End::kDone) << id;
  EXPECT_EQ(world.CountOf(End::kDone), 3);  // And one of those who generate.
  EXPECT_EQ(world.Admit(pinned).verdict, Verdict::kLost);
  EXPECT_TRUE(world.scheduler.lost(0));
  EXPECT_FALSE(world.scheduler.HasWork());
  EXPECT_EQ(*world.scheduler.OpenDocument(), 1);
  // Half as much is left.
  world.Admit(world.Batched(10, 2));
  EXPECT_EQ(world.Admit(world.Batched(11, 2)).wait_seconds, 2);
  world.RunUntil(30);
  EXPECT_EQ(world.calls.at(11).lane, 1);
  world.ExpectNothingLeft();
}

TEST(LanesTest, TheLastDeviceTakesAllThatWaitsWithIt) {
  LaneWorld world(Options(2));
  for (TicketId id = 1; id <= 6; ++id) world.Admit(world.Batched(id, 1));
  world.Admit(world.Generating(7, 100, 1000));
  world.RunUntil(0.5);
  world.scheduler.Expect(world.Batched(20, 1).ticket);
  world.Break(1);
  world.RunUntil(1.6);
  world.Break(0);
  world.RunUntil(5);
  EXPECT_EQ(world.CountOf(End::kNone), 0);
  EXPECT_GT(world.CountOf(End::kLost), 0);
  EXPECT_EQ(world.Admit(world.Batched(20, 1)).verdict, Verdict::kLost);
  EXPECT_EQ(world.scheduler.Expect(world.Batched(21, 1).ticket).verdict, Verdict::kLost);
  EXPECT_FALSE(world.scheduler.OpenDocument().has_value());
  EXPECT_EQ(world.scheduler.Stalled(), absl::ZeroDuration());
  world.ExpectNothingLeft();
}

// Everything at once, over many seeds: LaneWorld checks what must hold at every moment.
TEST(LanesTest, RandomLives) {
  int done = 0, failed = 0, late = 0, lost = 0, cancelled = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto uniform = [&](double low, double high) {
      return std::uniform_real_distribution<>(low, high)(random);
    };
    SchedulerOptions options = Options(2 + static_cast<int>(random() % 4));
    options.memory_bytes = 600;
    options.patience = absl::Seconds(uniform(0.5, 5));
    LaneWorld world(options);
    std::map<uint64_t, int> documents;
    for (TicketId id = 1; id <= 300; ++id) {
      const std::string client(1, static_cast<char>('a' + random() % 3));
      LaneWorld::Call call =
          random() % 2 == 0
              ? world.Batched(id, 0.02 * std::pow(20, uniform(0, 1)), client, random() % 2)
              : world.Generating(id, static_cast<int>(random() % 200),
                                 1 + static_cast<int>(random() % 50), client);
      if (random() % 3 == 0) {
        call.ticket.deadline =
            world.clock.Now() + absl::Seconds(call.ticket.seconds + uniform(0, 3));
      }
      if (call.ticket.generates() && random() % 4 == 0) {
        if (documents.size() < 4) {
          if (const auto lane = world.scheduler.OpenDocument()) documents[id] = *lane;
        }
        if (!documents.empty()) {
          call.document = documents.begin()->first;
          call.ticket.lane = documents.begin()->second;
        }
      }
      if (world.Admit(call).verdict == Verdict::kAdmitted && random() % 10 == 0) world.Cancel(id);
      if (random() % 12 == 0 && !documents.empty()) {
        world.CloseDocument(documents.begin()->first, documents.begin()->second);
        documents.erase(documents.begin());
      }
      if (seed % 2 == 1 && (id == 100 || id == 200)) world.Break(id == 100 ? 0 : 1);
      if (seed % 10 == 3 && id == 250) {
        for (int lane = 2; lane < options.lanes; ++lane) world.Break(lane);
      }
      if (random() % 20 == 0 && world.calls.contains(id / 2 + 1)) world.Cancel(id / 2 + 1);
      world.RunUntil(world.now() + uniform(0, 0.08));
    }
    // Requests that read into a document may have grown it since it was closed.
    for (const auto& [key, lane] : documents) world.CloseDocument(key, lane);
    world.RunUntil(world.now() + 60);
    for (const auto& [id, call] : world.calls) {
      if (call.document != 0) world.scheduler.Hold(call.document, 0, call.ticket.lane);
    }
    world.RunUntil(world.now() + 60);
    ASSERT_NO_FATAL_FAILURE(world.ExpectNothingLeft()) << "seed " << seed;
    if (HasFailure()) FAIL() << "seed " << seed;
    done += world.CountOf(End::kDone);
    failed += world.CountOf(End::kFailed);
    late += world.CountOf(End::kLate);
    lost += world.CountOf(End::kLost);
    cancelled += world.CountOf(End::kCancelled);
  }
  for (const int count : {done, failed, late, lost, cancelled}) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace longview::server
