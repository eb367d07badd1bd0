// The scheduler in simulated time: Poisson arrivals, lengths from 20 ms to 2 s, several clients
// and models, deadlines for some. Predictions are exact, so every promise can be checked.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "server/scheduler/scheduler.h"
#include "tests/support/fake_clock.h"

namespace longview::server {
namespace {

struct Source {
  std::string client;
  double rate;           // Requests per second.
  double deadline_rate;  // Share of requests that have a deadline.
  int models = 1;
};

class Simulation {
 public:
  Simulation(const SchedulerOptions& options, std::vector<Source> sources, unsigned seed)
      : options_(options),
        sources_(std::move(sources)),
        scheduler_(options, clock_),
        random_(seed),
        start_(clock_.Now()) {
    for (size_t i = 0; i < sources_.size(); ++i) ScheduleArrival(i);
  }

  void Run(double seconds) {
    const absl::Time end = start_ + absl::Seconds(seconds);
    while (clock_.Now() < end) {
      absl::Time next = arrivals_.begin()->first;
      if (scheduler_.running()) next = std::min(next, batch_end_);
      next = std::min(next, scheduler_.NextExpiry());
      clock_.AdvanceTo(next);
      if (scheduler_.running() && clock_.Now() >= batch_end_) FinishBatch();
      while (arrivals_.begin()->first <= clock_.Now()) Arrive();
      Expire();
      Dispatch();
      CheckAlways();
    }
  }

  // Measured.
  std::map<std::string, double> served;  // Seconds by client.
  int started = 0, expired = 0, refused_late = 0, refused_full = 0, displaced = 0;
  double longest_wait = 0;
  double busy_seconds = 0;
  double largest_gap = 0;  // Between clients that always had work waiting, in service.

  double now() const { return absl::ToDoubleSeconds(clock_.Now() - start_); }
  bool Idle() const { return !scheduler_.running() && !scheduler_.waiting(); }

  // Measures fairness among these clients from here on.
  void Watch(std::vector<std::string> clients) {
    watched_ = std::move(clients);
    served.clear();
  }

 private:
  struct Known {
    Ticket ticket;
    absl::Time arrival;
  };

  void ScheduleArrival(size_t source) {
    const double gap = std::exponential_distribution<>(sources_[source].rate)(random_);
    arrivals_.insert({clock_.Now() + absl::Seconds(gap), source});
  }

  double Uniform(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }

  void Arrive() {
    const size_t index = arrivals_.begin()->second;
    arrivals_.erase(arrivals_.begin());
    const Source& source = sources_[index];
    Ticket ticket;
    ticket.id = ++last_id_;
    ticket.client = source.client;
    ticket.model = 1 + static_cast<ModelId>(random_() % source.models);
    ticket.seconds = 0.02 * std::pow(100.0, Uniform(0, 1));
    if (Uniform(0, 1) < source.deadline_rate) {
      ticket.deadline = clock_.Now() + absl::Seconds(ticket.seconds + Uniform(0, 6));
    }
    const Admission admission = scheduler_.Admit(ticket);
    if (admission.verdict == Verdict::kAdmitted) known_[ticket.id] = {ticket, clock_.Now()};
    refused_late += admission.verdict == Verdict::kTooLate;
    refused_full += admission.verdict == Verdict::kQueueFull;
    for (const TicketId id : admission.displaced) {
      EXPECT_NE(known_.at(id).ticket.client, ticket.client);
      known_.erase(id);
      ++displaced;
    }
    ScheduleArrival(index);
  }

  void Expire() {
    for (const Departure& departure : scheduler_.Expire()) {
      const Ticket& ticket = known_.at(departure.id).ticket;
      EXPECT_FALSE(departure.was_running) << "started too late";
      // An expired ticket really could not be done any more.
      const absl::Time start = scheduler_.running() ? batch_end_ : clock_.Now();
      EXPECT_GT(start + absl::Seconds(ticket.seconds), ticket.deadline);
      known_.erase(departure.id);
      ++expired;
    }
  }

  void Dispatch() {
    const std::optional<Batch> batch = scheduler_.NextBatch();
    if (!batch) return;
    double seconds = 0;
    for (const TicketId id : batch->tickets) seconds += known_.at(id).ticket.seconds;
    EXPECT_NEAR(seconds, batch->seconds, 1e-9);
    if (batch->tickets.size() > 1) {
      EXPECT_LE(seconds, std::max(options_.batch_seconds, options_.full_batch_seconds) + 1e-9);
    }
    batch_end_ = clock_.Now() + absl::Seconds(batch->seconds);
    for (const TicketId id : batch->tickets) {
      const Known& known = known_.at(id);
      EXPECT_EQ(known.ticket.model, batch->model);
      EXPECT_LE(batch_end_, known.ticket.deadline);
      served[known.ticket.client] += known.ticket.seconds;
      longest_wait = std::max(longest_wait, absl::ToDoubleSeconds(clock_.Now() - known.arrival));
      ++started;
    }
    running_ = batch->tickets;
    busy_seconds += batch->seconds;
    MeasureFairness();
    Dispatch();  // A second batch must not start.
  }

  void FinishBatch() {
    scheduler_.Finish();
    for (const TicketId id : running_) known_.erase(id);
    running_.clear();
  }

  void MeasureFairness() {
    double least = 1e300, most = 0;
    for (const std::string& client : watched_) {
      least = std::min(least, served[client]);
      most = std::max(most, served[client]);
    }
    if (!watched_.empty()) largest_gap = std::max(largest_gap, most - least);
  }

  void CheckAlways() {
    EXPECT_TRUE(scheduler_.running() || !scheduler_.waiting()) << "idle while work waits";
    const QueueGauges gauges = scheduler_.Gauges();
    if (gauges.queued_requests > 1) {
      EXPECT_LE(gauges.queued_seconds, options_.max_queue_seconds + 1e-9);
    }
    EXPECT_EQ(static_cast<size_t>(gauges.queued_requests + gauges.running_requests), known_.size());
  }

  const SchedulerOptions options_;
  const std::vector<Source> sources_;
  testing::FakeClock clock_;
  Scheduler scheduler_;
  std::mt19937_64 random_;
  const absl::Time start_;
  absl::Time batch_end_;
  std::multimap<absl::Time, size_t> arrivals_;
  std::map<TicketId, Known> known_;
  std::vector<TicketId> running_;
  std::vector<std::string> watched_;
  TicketId last_id_ = 0;
};

constexpr double kLongest = 2.0;  // Seconds of the largest ticket.

SchedulerOptions Options() {
  SchedulerOptions options;
  options.max_queue_seconds = 20;
  options.batch_seconds = 0.5;
  options.slack_seconds = 0.5;
  options.patience = absl::Seconds(5);
  return options;
}

TEST(SimulationTest, LightLoadIsServedCompletely) {
  Simulation simulation(Options(), {{"a", 0.3, 0.0, 2}, {"b", 0.3, 0.0, 2}}, 1);
  simulation.Run(2000);
  EXPECT_EQ(simulation.refused_full + simulation.expired + simulation.refused_late, 0);
  EXPECT_GT(simulation.started, 1000);
}

TEST(SimulationTest, OverloadKeepsTheDeviceBusy) {
  Simulation simulation(Options(), {{"a", 4, 0.3, 3}, {"b", 4, 0.3, 3}, {"c", 4, 0.3, 3}}, 2);
  simulation.Run(1000);
  EXPECT_GT(simulation.busy_seconds, 0.99 * simulation.now());
  EXPECT_GT(simulation.refused_full, 0);
  EXPECT_GT(simulation.refused_late, 0);
}

TEST(SimulationTest, FloodDoesNotCostOthersTheirShare) {
  // One client asks for thirty times what the others ask for; all ask for more than a fourth.
  Simulation simulation(Options(),
                        {{"flood", 60, 0, 2}, {"b", 3, 0, 2}, {"c", 3, 0, 2}, {"d", 3, 0.5, 2}}, 3);
  simulation.Run(1000);
  EXPECT_GT(simulation.displaced, 0);
  const double fair = simulation.now() / 4;
  for (const std::string client : {"b", "c"}) {
    EXPECT_GT(simulation.served[client], 0.9 * fair) << client;
  }
  EXPECT_LT(simulation.served["flood"], 1.2 * fair);
}

TEST(SimulationTest, ServiceOfBackloggedClientsStaysTogether) {
  // No bound on the queue, so that nothing but the order of turns keeps them together.
  SchedulerOptions options = Options();
  options.max_queue_seconds = 1e6;
  for (unsigned seed = 10; seed < 20; ++seed) {
    Simulation simulation(options, {{"a", 24, 0, 1}, {"b", 4, 0, 1}, {"c", 4, 0, 2}}, seed);
    simulation.Run(30);  // Until all of them always have work waiting.
    simulation.Watch({"a", "b", "c"});
    simulation.Run(300);
    // Virtual times are within slack + one ticket of each other, and one that is next for its age,
    // at both ends of any interval.
    EXPECT_LE(simulation.largest_gap, 2 * (options.slack_seconds + 2 * kLongest))
        << "seed " << seed;
    EXPECT_GT(simulation.served["a"], 80);
  }
}

TEST(SimulationTest, NobodyStarvesBehindUrgentWork) {
  // Enough work with close deadlines to fill the device for ever, from the same client too.
  for (unsigned seed = 30; seed < 35; ++seed) {
    Simulation simulation(Options(), {{"a", 8, 0.9, 2}, {"b", 8, 0.9, 2}, {"c", 8, 1.0, 2}}, seed);
    simulation.Run(500);
    // A ticket is overtaken for `patience`; then what its client has in front of it, at most the
    // queue, is served at a third of the device's speed.
    EXPECT_LE(simulation.longest_wait,
              5 + 3 * (Options().max_queue_seconds + Options().slack_seconds + kLongest))
        << "seed " << seed;
    EXPECT_GT(simulation.expired + simulation.refused_late, 0);
  }
}

}  // namespace
}  // namespace longview::server
