// Steps and batches that both want the device, and who waits how long for it, in simulated time.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/server/scheduler/step_device.h"

namespace longview::server {
namespace {

constexpr TicketId kDocument = 1000000;
constexpr double kRounding = 1e-6;

constexpr double kTwentieth = 0.05;

SchedulerOptions Options(double nested_share = kTwentieth) {
  SchedulerOptions options;
  options.max_queue_seconds = 1e6;
  options.patience = absl::Seconds(2);
  options.nested_share = nested_share;
  return options;
}

// Every other seed has the default.
double ShareOf(unsigned seed) {
  return seed % 2 == 0 ? kTwentieth : SchedulerOptions().nested_share;
}

// Beside so many sequences that never end: the document takes at most 3 times its time and a
// second, and no gap between tokens is longer than twice what is said.
void ExpectDocumentBeside(int streams, double seconds, int layers) {
  StepDevice device(Options());
  for (int i = 1; i <= streams; ++i) {
    device.Admit(device.MakeCall(static_cast<TicketId>(i), "c" + std::to_string(i), 16, 1000000));
  }
  while (device.now() < 2) ASSERT_TRUE(device.Turn());
  device.AdmitBatch(kDocument, seconds, 2, layers);
  const SimulatedBatch& document = device.batch_calls.at(kDocument);
  while (document.ended < 0 && device.now() < 10 * seconds + 10) ASSERT_TRUE(device.Turn());
  EXPECT_LE(document.ended - document.arrival, 3 * seconds + 1);
  EXPECT_GT(document.ended, 0);
  EXPECT_LE(device.largest_gap, device.stated + kRounding);
}

TEST(SharesTest, LayersLongerThanTheCeilingGoOn) { ExpectDocumentBeside(2, 8.5, 36); }
TEST(SharesTest, DocumentStartsBesideManySequences) { ExpectDocumentBeside(60, 3, 300); }
TEST(SharesTest, DocumentOfLongLayersBesideManySequences) { ExpectDocumentBeside(90, 12, 12); }

TEST(SharesTest, AtMostOneLateStepGoesBetweenTwoSlices) {
  StepDevice device(Options());
  device.Admit(device.MakeCall(1, "a", 16, 1000000));
  device.AdmitBatch(kDocument, 30, 2, 60);  // Layers of half a second.
  int steps = 0, most = 0;
  device.at_slices = [&] {
    most = std::max(most, device.steps - steps);
    steps = device.steps;
  };
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(device.Turn());
  // Full steps have half of the time; of 3 ms each that is what goes between two layers.
  EXPECT_LE(most, 0.5 / 0.003 + 2);
  EXPECT_GE(device.stated, 0.5);
}

TEST(SharesTest, SequencesOfAClientWhoHadMoreHoldNobodysDocumentBack) {
  // The client of the one sequence can use no more than it has: it is behind for ever.
  StepDevice device(Options());
  device.Admit(device.MakeCall(1, "little", 16, 1000000));
  TicketId id = kDocument;
  device.AdmitBatch(++id, 60, 2, 600, "much");
  while (device.batch_calls.at(id).ended < 0) ASSERT_TRUE(device.Turn());
  device.AdmitBatch(++id, 1, 2, 10, "much");
  while (device.batch_calls.at(id).ended < 0) ASSERT_TRUE(device.Turn());
  EXPECT_LE(device.batch_calls.at(id).ended - device.batch_calls.at(id).arrival, 3 * 1 + 1);
}

// Sequences without end, names that nobody heard of before with deadlines as close as they can be,
// long documents and short ones: nobody waits longer than the closed form says.
class WaitTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(WaitTest, NobodyWaitsLongerThanTheClosedForm) {
  SchedulerOptions options = Options(ShareOf(GetParam()));
  options.max_queue_seconds = 8;
  StepDevice device(options);
  std::mt19937_64 random(GetParam());
  TicketId id = 0;
  for (int i = 0; i < 60; ++i) device.Admit(device.MakeCall(++id, "stream", 16, 1000000));
  while (device.now() < 1) ASSERT_TRUE(device.Turn());
  device.AdmitBatch(++id, 20, 2, 200, "patient");  // Had much.
  double next = device.now();
  const auto arrive = [&] {
    while (next < device.now()) {
      next += std::exponential_distribution<>(6)(random);
      const double seconds = 0.02 * std::pow(100.0, (random() % 1000) / 1000.0);
      const bool due = random() % 4 != 0;
      const auto wait = absl::Seconds(seconds + 0.001 * static_cast<double>(random() % 3000));
      if (device.scheduler.Gauges().queued_seconds + seconds > 8) continue;
      ++id;
      device.AdmitBatch(id, seconds, 3 + static_cast<ModelId>(random() % 3), 20,
                        "new " + std::to_string(id), due ? wait : absl::InfiniteDuration());
    }
    const bool waits = std::any_of(
        device.batch_calls.begin(), device.batch_calls.end(),
        [](const auto& call) { return call.second.started < 0 && call.second.layers == 7; });
    if (!waits && device.scheduler.Gauges().queued_seconds < 6) {
      device.AdmitBatch(++id, 1, 2, 7, "patient");
    }
  };
  device.at_slices = arrive;
  int patient = 0;
  while (device.now() < 400) {
    arrive();
    ASSERT_TRUE(device.Turn());
    std::erase_if(device.batch_calls, [&](const auto& item) {
      const SimulatedBatch& call = item.second;
      const double end = call.started < 0 ? device.now() : call.started;
      EXPECT_LE(end - call.arrival, call.most_wait) << item.first;
      patient += call.ended >= 0 && call.layers == 7;
      return call.ended >= 0;
    });
  }
  EXPECT_GT(patient, 3);
  EXPECT_GT(device.batches, 100);
  EXPECT_LE(device.largest_gap, device.stated + kRounding);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WaitTest, ::testing::Range(1u, 5u));

TEST(NestedTest, ShortWorkGoesBetweenTheSlicesOfLongWork) {
  StepDevice device(Options());
  TicketId id = kDocument;
  device.AdmitBatch(id, 60, 2, 6000);
  double next = 3;
  device.at_slices = [&] {
    if (device.now() < next) return;
    next += 0.5;
    device.AdmitBatch(++id, 0.01, 3, 2, "short");
  };
  ASSERT_TRUE(device.Turn());
  const SimulatedBatch& document = device.batch_calls.at(kDocument);
  double nested = 0;
  int count = 0;
  for (const auto& [ticket, call] : device.batch_calls) {
    if (ticket == kDocument || call.ended < 0 || call.ended >= document.ended) continue;
    EXPECT_TRUE(call.nested);
    EXPECT_LE(call.ended - call.arrival, 1);
    nested += call.seconds;
    ++count;
  }
  EXPECT_GT(count, 100);
  EXPECT_NEAR(document.ended - document.started, 60 + nested, 1e-6);
  EXPECT_LE(nested, 0.05 * 60);
}

// Seconds that shorter work may take of a document, and of these in advance.
double NestedTotal(double document, double share) {
  return std::max(share * document, std::min(0.5, (document - 1) / 4));
}
double NestedAdvance(double document, double share) {
  return std::min(0.1, NestedTotal(document, share));
}

// The wait of one ticket that comes when the document has computed for 0.3 s.
double WaitBeside(double document, double seconds) {
  StepDevice device(Options());
  device.AdmitBatch(kDocument, document, 2, static_cast<int>(document * 100));
  device.at_slices = [&] {
    if (device.now() < 0.3 || device.batch_calls.contains(1)) return;
    device.AdmitBatch(1, seconds, 3, 2, "short");
  };
  while (device.Turn()) continue;
  const SimulatedBatch& call = device.batch_calls.at(1);
  EXPECT_LE(device.batch_calls.at(kDocument).ended, document + seconds + kRounding);
  return call.started - call.arrival;
}

TEST(NestedTest, OneShortRequestEntersADocumentOfSecondsAtOnce) {
  for (const double document : {2.0, 2.4, 5.0, 10.0, 60.0}) {
    EXPECT_LE(WaitBeside(document, 0.01), kRounding) << document;
    EXPECT_LE(WaitBeside(document, 0.1), kRounding) << document;
  }
  // A document of a second has no room for so much, which waits for its end.
  EXPECT_NEAR(WaitBeside(1, 0.1), 0.7, 0.01);
}

TEST(NestedTest, FloodOfShorterWorkKeepsNobodysPlace) {
  // One client's tickets of a millisecond take whatever is earned, unless others are saved up for.
  StepDevice device(Options());
  TicketId id = 1;
  device.AdmitBatch(kDocument, 60, 2, 6000);
  device.at_slices = [&] {
    while (device.scheduler.Gauges().queued_requests < 20) {
      device.AdmitBatch(++id, 0.001, 3, 1, "flood");
    }
    if (device.now() > 20 && !device.batch_calls.contains(1)) {
      device.AdmitBatch(1, 0.05, 4, 5, "short");
    }
  };
  ASSERT_TRUE(device.Turn());
  const SimulatedBatch& call = device.batch_calls.at(1);
  EXPECT_TRUE(call.nested);
  EXPECT_LE(call.started - call.arrival, 0.05 / 0.05 + 0.05);
  EXPECT_LE(device.batch_calls.at(kDocument).ended, 63 + kRounding);
}

// Clients with little to do, each at its own pace, beside documents of any length.
TEST_P(WaitTest, ShortOnesWaitNoLongerThanTheClosedForm) {
  const double share = ShareOf(GetParam());
  StepDevice device(Options(share));
  std::mt19937_64 random(GetParam());
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, static_cast<double>(random() % 1001) / 1000);
  };
  TicketId id = 0;
  double next = 0;
  std::map<TicketId, double> most;  // By the closed form.
  int in_documents = 0;
  double document = 0;
  device.at_slices = [&] {
    for (; next < device.now(); next += std::exponential_distribution<>(1.5)(random)) {
      const double seconds = between(0.002, 0.1);
      const double advance = NestedAdvance(document, share);
      double ahead = 0;
      for (const auto& [other, waiting] : device.batch_calls) {
        if (waiting.started < 0 && other < kDocument) ahead += waiting.seconds;
      }
      if (ahead > 0 || seconds > advance) continue;
      ++id;
      device.AdmitBatch(id, seconds, 3, 3, "c" + std::to_string(id % 7));
      // Work before it may have used up all that is allowed; others run between meanwhile.
      const double needed =
          seconds * document / std::max(1e-9, NestedTotal(document, share) - advance);
      most[id] = 0.1 + 2 * document / 50 + 1.2 * std::min(needed, document);
    }
  };
  for (int i = 0; i < 40; ++i) {
    document = between(0.2, 60);
    device.AdmitBatch(kDocument + static_cast<TicketId>(i), document, 2, 50, "documents");
    const double begun = device.now();
    while (device.Turn()) continue;
    for (const auto& [other, call] : device.batch_calls) {
      if (other >= kDocument) continue;
      in_documents += call.nested;
      EXPECT_LE(call.started - call.arrival, most.at(other)) << other;
    }
    double after = 0;
    for (const auto& [other, call] : device.batch_calls) {
      if (other < kDocument && !call.nested) after += call.seconds;
    }
    EXPECT_LE(device.now() - begun - after, document + NestedTotal(document, share) + kRounding);
    device.batch_calls.clear();
  }
  EXPECT_GT(in_documents, 100);
}

// Seconds that a document takes while short work never ends.
double SecondsBesideAFlood(double document) {
  StepDevice device(Options());
  TicketId id = kDocument;
  device.AdmitBatch(id, document, 2, static_cast<int>(100 * document));
  device.at_slices = [&] { device.AdmitBatch(++id, 0.02, 3, 2, "short"); };
  EXPECT_TRUE(device.Turn());
  return device.batch_calls.at(kDocument).ended;
}

// Requests of 0.055 s, each when the one before is answered, beside a document of 28 s.
TEST(NestedTest, SteadyShortTrafficIsAnsweredInHalfASecondByDefault) {
  constexpr double kShort = 0.055, kLong = 28;
  StepDevice device(Options(SchedulerOptions().nested_share));
  TicketId id = 0;
  device.AdmitBatch(kDocument, kLong, 2, 2800);
  device.at_slices = [&] {
    if (id == 0 || device.batch_calls.at(id).ended >= 0) {
      device.AdmitBatch(++id, kShort, 3, 3, "short");
    }
  };
  ASSERT_TRUE(device.Turn());
  std::vector<double> times;
  for (TicketId i = 1; i < id; ++i) {
    const SimulatedBatch& call = device.batch_calls.at(i);
    EXPECT_TRUE(call.nested);
    times.push_back(call.ended - call.arrival);
  }
  ASSERT_GT(times.size(), 50u);
  std::sort(times.begin(), times.end());
  EXPECT_LE(times[times.size() / 2], 0.5);
  EXPECT_LE(times.back(), 0.55);
  EXPECT_LE(device.batch_calls.at(kDocument).ended, 1.15 * kLong);
}

TEST(NestedTest, FloodOfShortWorkTakesATwentiethOfALongDocument) {
  EXPECT_LE(SecondsBesideAFlood(20), 21 + kRounding);
  EXPECT_GT(SecondsBesideAFlood(20), 20.9);
}

TEST(NestedTest, FloodOfShortWorkTakesHalfASecondOfAShorterOne) {
  EXPECT_NEAR(SecondsBesideAFlood(5), 5.5, 0.03);
  EXPECT_NEAR(SecondsBesideAFlood(2.4), 2.4 + 0.35, 0.03);
  EXPECT_NEAR(SecondsBesideAFlood(0.8), 0.84, 0.01 + kRounding);
}

TEST(NestedTest, OnlyWhatFitsBesideTheLongOneGoesBetween) {
  SchedulerOptions options = Options();
  options.memory_bytes = 100;
  testing::FakeClock clock;
  Scheduler scheduler(options, clock);
  const auto admit = [&](TicketId id, double seconds, double bytes) {
    return scheduler
        .Admit({.id = id, .model = 1, .client = "a", .seconds = seconds, .bytes = bytes})
        .verdict;
  };
  EXPECT_EQ(admit(1, 60, 70), Verdict::kAdmitted);
  ASSERT_TRUE(scheduler.NextBatch());
  EXPECT_EQ(admit(2, 0.01, 31), Verdict::kAdmitted);
  EXPECT_EQ(admit(3, 0.01, 30), Verdict::kAdmitted);
  EXPECT_EQ(admit(4, 0.01, 30), Verdict::kAdmitted);
  clock.Advance(1);
  const std::optional<Batch> nested = scheduler.Interrupt(1);
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->tickets, std::vector<TicketId>{3});
  EXPECT_FALSE(scheduler.Interrupt(0.01)) << "a third batch";
  clock.Advance(0.01);
  // Both are told who is gone.
  EXPECT_EQ(scheduler.Cancel(1), CancelOutcome::kRunning);
  EXPECT_TRUE(scheduler.TakeDrops().empty());
  EXPECT_TRUE(scheduler.Wanted());
  scheduler.Finish();
  EXPECT_EQ(scheduler.TakeDrops(), std::vector<TicketId>{1});
  EXPECT_FALSE(scheduler.Wanted());
  scheduler.Finish();
  ASSERT_TRUE(scheduler.NextBatch());
  scheduler.Finish();
  while (scheduler.NextBatch()) scheduler.Finish();
  EXPECT_EQ(scheduler.remembered(), 0u);
}

TEST(NestedTest, DeadlinesCountWithIt) {
  testing::FakeClock clock;
  Scheduler scheduler(Options(), clock);
  const auto ticket = [&](TicketId id, double seconds, double due) {
    return Ticket{.id = id,
                  .model = 1,
                  .client = "a",
                  .seconds = seconds,
                  .deadline = clock.Now() + absl::Seconds(due)};
  };
  ASSERT_EQ(scheduler.Admit(ticket(1, 60, 100)).verdict, Verdict::kAdmitted);
  ASSERT_TRUE(scheduler.NextBatch());
  ASSERT_EQ(scheduler.Admit(ticket(2, 60, 200)).verdict, Verdict::kAdmitted);
  EXPECT_EQ(scheduler.Admit(ticket(3, 1, 10)).verdict, Verdict::kTooLate);
  EXPECT_EQ(scheduler.Admit(ticket(4, 0.2, 1)).verdict, Verdict::kTooLate);
  const Admission admitted = scheduler.Admit(ticket(5, 0.01, 1));
  EXPECT_EQ(admitted.verdict, Verdict::kAdmitted);
  EXPECT_NEAR(admitted.wait_seconds, 0, 1e-9);
  EXPECT_TRUE(scheduler.Expire().empty());
  EXPECT_GT(scheduler.NextExpiry(), clock.Now());
  clock.Advance(0.25);
  EXPECT_TRUE(scheduler.Expire().empty());
  const std::optional<Batch> nested = scheduler.Interrupt(0.05);
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->tickets, std::vector<TicketId>{5});
  clock.Advance(0.01);
  scheduler.Finish();
  // The long one's own deadline is kept: half a second is left of it.
  scheduler.Finish();
  ASSERT_TRUE(scheduler.NextBatch());
  clock.Advance(30);
  ASSERT_EQ(scheduler.Admit(ticket(6, 0.5, 1000)).verdict, Verdict::kAdmitted);
  ASSERT_TRUE(scheduler.Interrupt(0.05));
  scheduler.Finish();
  scheduler.Finish();
  EXPECT_EQ(scheduler.remembered(), 0u);
}

TEST(NestedTest, NotOfTheSameModelWhereItsBatchesShareBuffers) {
  SchedulerOptions options = Options();
  options.nests_within_model = false;
  StepDevice device(options);
  device.AdmitBatch(1, 10, 2, 100);
  device.AdmitBatch(2, 0.01, 2, 1, "b");
  device.AdmitBatch(3, 0.01, 3, 1, "b");
  ASSERT_TRUE(device.Turn());
  EXPECT_TRUE(device.batch_calls.at(3).nested);
  EXPECT_FALSE(device.batch_calls.at(2).nested);
}

}  // namespace
}  // namespace longview::server
