#include "tests/server/scheduler/naive_scheduler.h"

#include <algorithm>
#include <limits>

namespace longview::server {
namespace {

// The lowest time of those in `awake`, or the highest of all if there are none.
template <typename Key>
double Floor(const std::map<Key, double>& times, const std::set<Key>& awake, double floor) {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = floor;
  for (const auto& [key, time] : times) {
    if (awake.contains(key)) lowest = std::min(lowest, time);
    highest = std::max(highest, time);
  }
  return std::max(floor, awake.empty() ? highest : lowest);
}

}  // namespace

std::set<std::string> NaiveScheduler::Clients() const {
  std::set<std::string> clients;
  for (const Waiting& waiting : waiting_) clients.insert(waiting.ticket.client);
  return clients;
}

double NaiveScheduler::ClientTime(const std::string& client) const {
  const auto it = client_times_.find(client);
  return it == client_times_.end() ? client_floor_ : std::max(client_floor_, it->second);
}

double NaiveScheduler::ModelTime(ModelId model) const {
  const auto it = model_times_.find(model);
  return it == model_times_.end() ? model_floor_ : std::max(model_floor_, it->second);
}

const Ticket* NaiveScheduler::Find(TicketId id) const {
  for (const Waiting& waiting : waiting_) {
    if (waiting.ticket.id == id) return &waiting.ticket;
  }
  return nullptr;
}

void NaiveScheduler::RaiseFloors() {
  std::set<ModelId> models;
  for (const Waiting& waiting : waiting_) models.insert(waiting.ticket.model);
  client_floor_ = Floor(client_times_, Clients(), client_floor_);
  model_floor_ = Floor(model_times_, models, model_floor_);
}

void NaiveScheduler::Remove(TicketId id) {
  std::erase_if(waiting_, [id](const Waiting& waiting) { return waiting.ticket.id == id; });
  RaiseFloors();
}

void NaiveScheduler::Add(const Ticket& ticket, const std::vector<TicketId>& displaced) {
  for (const TicketId id : displaced) Remove(id);
  client_times_[ticket.client] = ClientTime(ticket.client);
  model_times_[ticket.model] = ModelTime(ticket.model);
  waiting_.push_back({ticket, std::min(ticket.deadline, clock_.Now() + options_.patience),
                      clock_.Now() + options_.patience});
}

bool NaiveScheduler::Cancel(TicketId id) {
  if (Find(id) == nullptr) return false;
  Remove(id);
  return true;
}

std::set<TicketId> NaiveScheduler::Expire() {
  const absl::Time start = std::max(clock_.Now(), batch_end_.value_or(clock_.Now()));
  std::set<TicketId> gone;
  for (const Waiting& waiting : waiting_) {
    const Ticket& ticket = waiting.ticket;
    if (start > ticket.deadline - absl::Seconds(ticket.seconds)) gone.insert(ticket.id);
  }
  for (const TicketId id : gone) Remove(id);
  return gone;
}

std::set<std::string> NaiveScheduler::ClientsInWindow() const {
  std::set<std::string> clients;
  for (const std::string& client : Clients()) {
    if (ClientTime(client) <= client_floor_ + options_.slack_seconds) clients.insert(client);
  }
  return clients;
}

const NaiveScheduler::Waiting* NaiveScheduler::MostUrgent(
    ModelId model, const std::set<std::string>& clients) const {
  const Waiting* best = nullptr;
  for (const Waiting& waiting : waiting_) {
    if (waiting.ticket.model != model || !clients.contains(waiting.ticket.client)) continue;
    if (best == nullptr ||
        std::pair(waiting.urgency, waiting.ticket.id) < std::pair(best->urgency, best->ticket.id)) {
      best = &waiting;
    }
  }
  return best;
}

std::optional<ModelId> NaiveScheduler::ChooseModel() const {
  const std::set<std::string> clients = ClientsInWindow();
  double lowest = std::numeric_limits<double>::infinity();
  for (const Waiting& waiting : waiting_) {
    if (!clients.contains(waiting.ticket.client)) continue;
    lowest = std::min(lowest, ModelTime(waiting.ticket.model));
  }
  const Waiting* best = nullptr;
  for (const Waiting& waiting : waiting_) {
    if (ModelTime(waiting.ticket.model) > lowest + options_.slack_seconds) continue;
    const Waiting* candidate = MostUrgent(waiting.ticket.model, clients);
    if (candidate == nullptr) continue;
    if (best == nullptr || std::pair(candidate->urgency, candidate->ticket.id) <
                               std::pair(best->urgency, best->ticket.id)) {
      best = candidate;
    }
  }
  if (best == nullptr) return std::nullopt;
  return best->ticket.model;
}

std::optional<Batch> NaiveScheduler::NextBatch() {
  if (batch_end_) return std::nullopt;
  if (waiting_.empty()) return std::nullopt;
  const Waiting oldest =
      *std::min_element(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
        return std::pair(a.aged, a.ticket.id) < std::pair(b.aged, b.ticket.id);
      });
  const bool some_aged = oldest.aged <= clock_.Now();
  const bool for_age = some_aged && owed_ <= 0;
  const ModelId model = for_age ? oldest.ticket.model : *ChooseModel();
  Batch batch;
  batch.model = model;
  const double most =
      std::max(options_.batch_seconds, std::min(options_.full_batch_seconds, QueuedSeconds() / 2));
  double bytes = 0;
  absl::Time soonest = absl::InfiniteFuture();
  std::set<std::string> open = ClientsInWindow();
  while (const Waiting* next =
             for_age && batch.tickets.empty() ? &oldest : MostUrgent(model, open)) {
    const Ticket ticket = next->ticket;
    const double seconds = batch.seconds + ticket.seconds;
    const bool over = ClientTime(ticket.client) > client_floor_ + options_.slack_seconds;
    const bool late = clock_.Now() + absl::Seconds(seconds) > std::min(soonest, ticket.deadline);
    const bool large = options_.memory_bytes > 0 && bytes + ticket.bytes > options_.memory_bytes;
    const bool full = static_cast<int>(batch.tickets.size()) == options_.max_batch_items;
    const bool first = for_age && batch.tickets.empty();
    if ((over && !first) || (!batch.tickets.empty() && (seconds > most || late || large || full))) {
      open.erase(ticket.client);
      continue;
    }
    batch.tickets.push_back(ticket.id);
    batch.seconds = seconds;
    bytes += ticket.bytes;
    soonest = std::min(soonest, ticket.deadline);
    client_times_[ticket.client] += ticket.seconds / ticket.weight;
    model_times_[ticket.model] += ticket.seconds;
    RaiseFloors();
    Remove(ticket.id);
  }
  if (for_age) {
    owed_ += 7 * batch.seconds;
  } else {
    owed_ -= batch.seconds;
    if (!some_aged) owed_ = std::max(0.0, owed_);
  }
  batch_end_ = clock_.Now() + absl::Seconds(batch.seconds);
  return batch;
}

double NaiveScheduler::QueuedSeconds() const {
  double seconds = 0;
  for (const Waiting& waiting : waiting_) seconds += waiting.ticket.seconds;
  return seconds;
}

}  // namespace longview::server
