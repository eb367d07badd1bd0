// Random operations on the scheduler and on the naive one; every answer must agree.
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "server/scheduler/scheduler.h"
#include "tests/server/scheduler/naive_scheduler.h"
#include "tests/support/fake_clock.h"

namespace longview::server {
namespace {

class Duel {
 public:
  explicit Duel(unsigned seed)
      : random_(seed),
        options_(RandomOptions()),
        real_(options_, clock_),
        naive_(options_, clock_) {}

  void Step() {
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2:
        Admit();
        break;
      case 3:
        Cancel();
        break;
      case 4:
        clock_.Advance(Eighths(4));
        break;
      case 5:
        if (real_.running()) Finish();
        break;
      default:
        Dispatch();
    }
    ASSERT_NO_FATAL_FAILURE(Expire());
    ASSERT_EQ(real_.waiting(), naive_.size() > 0);
    ASSERT_DOUBLE_EQ(real_.Gauges().queued_seconds, naive_.QueuedSeconds());
    ASSERT_EQ(real_.Gauges().queued_requests, static_cast<int64_t>(naive_.size()));
  }

  void Drain() {
    for (int i = 0; i < 10000 && (real_.running() || real_.waiting()); ++i) {
      if (real_.running()) Finish();
      ASSERT_NO_FATAL_FAILURE(Expire());
      ASSERT_NO_FATAL_FAILURE(Dispatch());
    }
    EXPECT_EQ(real_.remembered(), 0u);
  }

 private:
  // Multiples of 1/8 s, so that sums are exact in both.
  double Eighths(int most) { return static_cast<double>(1 + random_() % (8 * most)) / 8; }

  SchedulerOptions RandomOptions() {
    SchedulerOptions options;
    options.max_queue_seconds = Eighths(10);
    options.batch_seconds = Eighths(3);
    options.full_batch_seconds = Eighths(6);
    options.slack_seconds = Eighths(2);
    options.memory_bytes = random_() % 2 == 0 ? 0 : 100;
    options.max_batch_items = 1 + static_cast<int>(random_() % 6);
    options.patience = absl::Seconds(Eighths(8));
    options.nested_share = 0;
    return options;
  }

  void Admit() {
    Ticket ticket;
    ticket.id = ++last_id_;
    ticket.model = static_cast<ModelId>(random_() % 3);
    ticket.client = std::string(1, static_cast<char>('a' + random_() % 4));
    ticket.weight = ticket.client == "d" ? 2 : 1;
    ticket.seconds = Eighths(2);
    ticket.bytes = static_cast<double>(random_() % 120);
    if (random_() % 2 == 0) ticket.deadline = clock_.Now() + absl::Seconds(Eighths(6));
    const double queued = naive_.QueuedSeconds();
    const Admission admission = real_.Admit(ticket);
    switch (admission.verdict) {
      case Verdict::kAdmitted: {
        double displaced = 0;
        for (const TicketId id : admission.displaced) {
          const Ticket* other = naive_.Find(id);
          ASSERT_NE(other, nullptr);
          EXPECT_NE(other->client, ticket.client);
          displaced += other->seconds;
        }
        if (queued > 0) {
          EXPECT_LE(queued - displaced + ticket.seconds,
                    std::max(options_.max_queue_seconds, ticket.seconds));
        }
        naive_.Add(ticket, admission.displaced);
        break;
      }
      case Verdict::kQueueFull:
        EXPECT_GT(queued + ticket.seconds, options_.max_queue_seconds);
        EXPECT_GT(queued, 0);
        break;
      case Verdict::kTooLarge:
        EXPECT_GT(ticket.bytes, options_.memory_bytes);
        break;
      case Verdict::kMemoryFull:
        FAIL() << "nothing is held for documents";
      case Verdict::kLost:
        FAIL() << "the device is there";
      case Verdict::kTooLate:
        // Never refused if even the whole queue in front of it left time enough.
        EXPECT_GT(clock_.Now() + absl::Seconds(real_.WorkSeconds() + ticket.seconds),
                  ticket.deadline);
        break;
    }
  }

  void Cancel() {
    if (last_id_ == 0) return;
    const TicketId id = 1 + random_() % last_id_;
    if (running_.contains(id)) return;  // Dropping from a batch changes when the device is free.
    EXPECT_EQ(real_.Cancel(id) == CancelOutcome::kRemoved, naive_.Cancel(id));
  }

  void Expire() {
    std::set<TicketId> gone;
    for (const Departure& departure : real_.Expire()) {
      if (!departure.was_running) gone.insert(departure.id);
    }
    if (real_.running() && !real_.Wanted()) Finish();
    ASSERT_EQ(gone, naive_.Expire());
  }

  void Dispatch() {
    const std::optional<Batch> real = real_.NextBatch();
    const std::optional<Batch> naive = naive_.NextBatch();
    ASSERT_EQ(real.has_value(), naive.has_value());
    if (!real) return;
    ASSERT_EQ(real->model, naive->model);
    ASSERT_EQ(real->tickets, naive->tickets);
    ASSERT_EQ(real->seconds, naive->seconds);
    running_ = {real->tickets.begin(), real->tickets.end()};
  }

  void Finish() {
    real_.Finish();
    naive_.Finish();
    running_.clear();
  }

  std::mt19937_64 random_;
  testing::FakeClock clock_;
  const SchedulerOptions options_;
  Scheduler real_;
  NaiveScheduler naive_;
  std::set<TicketId> running_;
  TicketId last_id_ = 0;
};

TEST(PropertyTest, AgreesWithTheNaiveScheduler) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Duel duel(seed);
    for (int step = 0; step < 400; ++step) {
      ASSERT_NO_FATAL_FAILURE(duel.Step()) << "seed " << seed << " step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(duel.Drain()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace longview::server
