// The scheduler's rules by linear search, written for being read; property_test.cc compares.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/scheduler/scheduler.h"

namespace longview::server {

class NaiveScheduler {
 public:
  NaiveScheduler(const SchedulerOptions& options, const Clock& clock)
      : options_(options), clock_(clock) {}

  // REQUIRES: the scheduler under test admitted it and displaced these.
  void Add(const Ticket& ticket, const std::vector<TicketId>& displaced);
  bool Cancel(TicketId id);  // Whether it was waiting.
  std::set<TicketId> Expire();
  std::optional<Batch> NextBatch();
  void Finish() { batch_end_.reset(); }

  double QueuedSeconds() const;
  size_t size() const { return waiting_.size(); }
  const Ticket* Find(TicketId id) const;

 private:
  struct Waiting {
    Ticket ticket;
    absl::Time urgency;
    absl::Time aged;  // When it has waited for `patience`.
  };

  std::set<std::string> Clients() const;
  double ClientTime(const std::string& client) const;
  double ModelTime(ModelId model) const;
  void Remove(TicketId id);
  void RaiseFloors();
  std::optional<ModelId> ChooseModel() const;
  // Most urgent ticket of the model among these clients.
  const Waiting* MostUrgent(ModelId model, const std::set<std::string>& clients) const;
  std::set<std::string> ClientsInWindow() const;

  const SchedulerOptions options_;
  const Clock& clock_;
  std::vector<Waiting> waiting_;
  std::map<std::string, double> client_times_;
  std::map<ModelId, double> model_times_;
  double client_floor_ = 0;
  double model_floor_ = 0;
  double owed_ = 0;  // Seconds that others are to have before an aged ticket is next again.
  std::optional<absl::Time> batch_end_;
};

}  // namespace longview::server
