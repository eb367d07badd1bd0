#include "server/scheduler/waiting_queue.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace longview::server {

absl::Time WaitingQueue::Urgency(const Ticket& ticket, absl::Time now) const {
  return std::min(ticket.deadline, now + patience_);
}

void WaitingQueue::Add(const Ticket& ticket, absl::Time now) {
  const absl::Time urgency = Urgency(ticket, now);
  entries_.emplace(ticket.id, Entry{ticket, urgency, now});
  Client& client = clients_[ticket.client];
  if (client.count++ == 0) client_shares_.Wake(ticket.client);
  if (model_counts_[ticket.model]++ == 0) model_shares_.Wake(ticket.model);
  client.lines[ticket.model].insert({urgency, ticket.id});
  client.sums.Add(ticket, +1);
  client.weight = ticket.weight;
  sums_.Add(ticket, +1);
  if (ticket.generates()) {
    ++generating_;
    generating_bytes_ += ticket.bytes;
    decode_seconds_ += ticket.seconds - ticket.prompt_seconds;
    joins_.insert({now, ticket.id});
  } else {
    arrivals_.insert({now, ticket.id});
    lengths_.insert({ticket.seconds, ticket.id});
  }
}

Ticket WaitingQueue::TakeFromLine(TicketId id) {
  auto node = entries_.extract(id);
  Ticket ticket = std::move(node.mapped().ticket);
  Client& client = clients_.find(ticket.client)->second;
  Order& line = client.lines.at(ticket.model);
  line.erase({node.mapped().urgency, id});
  if (line.empty()) client.lines.erase(ticket.model);
  client.sums.Add(ticket, -1);
  sums_.Add(ticket, -1);
  if (ticket.generates()) {
    --generating_;
    generating_bytes_ = generating_ == 0 ? 0 : generating_bytes_ - ticket.bytes;
    const double decode = ticket.seconds - ticket.prompt_seconds;
    decode_seconds_ = generating_ == 0 ? 0 : decode_seconds_ - decode;
    joins_.erase({node.mapped().arrival, id});
  } else {
    arrivals_.erase({node.mapped().arrival, id});
    lengths_.erase({ticket.seconds, id});
  }
  // Rounding errors of the sums must not outlive the tickets.
  if (client.lines.empty()) client.sums = {};
  if (entries_.empty()) sums_ = {};
  if (generating_ == 0) sums_.prompt_seconds = 0;
  return ticket;
}

Ticket WaitingQueue::Take(TicketId id, bool served) {
  Ticket ticket = TakeFromLine(id);
  if (served) Charge(ticket, ticket.seconds);
  Leave(ticket);
  return ticket;
}

void WaitingQueue::Charge(const Ticket& ticket, double seconds) {
  client_shares_.Charge(ticket.client, seconds / ticket.weight);
  model_shares_.Charge(ticket.model, seconds);
}

void WaitingQueue::Leave(const Ticket& ticket) {
  const auto client = clients_.find(ticket.client);
  if (--client->second.count == 0) {
    client_shares_.Sleep(ticket.client);
    clients_.erase(client);
  }
  const auto model = model_counts_.find(ticket.model);
  if (--model->second == 0) {
    model_shares_.Sleep(ticket.model);
    model_counts_.erase(model);
  }
}

bool WaitingQueue::WaitsForBatch(const Client& client) const {
  // All tickets of a model generate, or none.
  return std::any_of(client.lines.begin(), client.lines.end(), [this](const auto& line) {
    return !entries_.at(line.second.begin()->second).ticket.generates();
  });
}

double WaitingQueue::WindowEnd() const {
  double from = client_shares_.floor();
  const auto& awake = client_shares_.awake();
  const auto first = std::find_if(awake.begin(), awake.end(), [this](const auto& client) {
    return WaitsForBatch(clients_.at(client.second));
  });
  if (first != awake.end()) from = std::max(from, first->first);
  return from + slack_;
}

template <typename Visit>
void WaitingQueue::ForEachInWindow(Visit visit) const {
  const double end = WindowEnd();
  for (const auto& [time, name] : client_shares_.awake()) {
    if (time > end) break;
    visit(name, clients_.at(name));
  }
}

const Ticket* WaitingQueue::Next() const {
  if (entries_.size() == generating_) return nullptr;
  const auto generates = [this](const Order& line) {
    return entries_.at(line.begin()->second).ticket.generates();
  };
  double lowest = std::numeric_limits<double>::infinity();
  ForEachInWindow([&](const std::string&, const Client& client) {
    for (const auto& [model, line] : client.lines) {
      if (generates(line)) continue;
      lowest = std::min(lowest, model_shares_.TimeOf(model));
    }
  });
  std::pair<absl::Time, TicketId> best = {absl::InfiniteFuture(), 0};
  bool found = false;
  ForEachInWindow([&](const std::string&, const Client& client) {
    for (const auto& [model, line] : client.lines) {
      if (generates(line) || model_shares_.TimeOf(model) > lowest + slack_) continue;
      if (!found || *line.begin() < best) best = *line.begin();
      found = true;
    }
  });
  return found ? &entries_.at(best.second).ticket : nullptr;
}

const Ticket* WaitingQueue::Oldest() const {
  return arrivals_.empty() ? nullptr : &entries_.at(arrivals_.begin()->second).ticket;
}

const Ticket* WaitingQueue::NextShort(double seconds, double soon,
                                      absl::FunctionRef<bool(const Ticket&)> may) const {
  const double most = std::max(seconds, soon);
  if (lengths_.empty() || lengths_.begin()->first > seconds) return nullptr;
  for (const auto& [time, name] : client_shares_.awake()) {
    std::pair<absl::Time, TicketId> best = {absl::InfiniteFuture(), 0};
    const Ticket* found = nullptr;
    for (const auto& [model, line] : clients_.at(name).lines) {
      for (const auto& place : line) {
        const Ticket& ticket = entries_.at(place.second).ticket;
        if (ticket.generates() || (found != nullptr && best < place)) break;
        if (ticket.seconds > most || !may(ticket)) continue;
        best = place;
        found = &ticket;
        break;
      }
    }
    if (found != nullptr) return found->seconds <= seconds ? found : nullptr;
  }
  return nullptr;
}

double WaitingQueue::ShortSeconds(double seconds) const {
  double sum = 0;
  for (const auto& [length, id] : lengths_) {
    if (length > seconds) break;
    sum += length;
  }
  return sum;
}

void WaitingQueue::Serve(TicketId first, absl::FunctionRef<Reply(const Ticket&)> ask) {
  struct Head {
    absl::Time urgency;
    TicketId id;
    std::string client;
    bool operator<(const Head& other) const {  // For a heap with the most urgent on top.
      return std::pair(other.urgency, other.id) < std::pair(urgency, id);
    }
  };
  const ModelId model = entries_.at(first).ticket.model;
  std::vector<std::string> names;
  ForEachInWindow([&](const std::string& name, const Client& client) {
    if (client.lines.contains(model)) names.push_back(name);
  });
  ask(entries_.at(first).ticket);
  Take(first, /*served=*/true);
  std::priority_queue<Head> heads;
  const auto push_head = [&](const std::string& name) {
    const auto client = clients_.find(name);
    if (client == clients_.end()) return;
    const auto line = client->second.lines.find(model);
    if (line == client->second.lines.end()) return;
    heads.push({line->second.begin()->first, line->second.begin()->second, name});
  };
  for (const std::string& name : names) push_head(name);

  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    if (client_shares_.TimeOf(head.client) > WindowEnd()) continue;
    const Reply reply = ask(entries_.at(head.id).ticket);
    if (reply == Reply::kStop) return;
    if (reply == Reply::kPass) continue;
    Take(head.id, /*served=*/true);
    push_head(head.client);
  }
}

void WaitingQueue::Offer(absl::Time now, absl::FunctionRef<Reply(const Ticket&)> ask) {
  if (generating_ == 0) return;
  if (const auto [arrival, id] = *joins_.begin(); arrival + patience_ <= now) {
    const Reply reply = ask(entries_.at(id).ticket);
    if (reply == Reply::kStop) return;
    if (reply == Reply::kTake) TakeFromLine(id);
  }
  using Head = std::tuple<double, absl::Time, TicketId>;  // Lead of the client, urgency.
  std::set<Head> heads;
  const auto push = [&](const std::string& name, const Order& line, Order::const_iterator next) {
    if (next == line.end()) return;
    const auto& [urgency, id] = *next;
    if (entries_.at(id).ticket.generates()) heads.emplace(Lead(name), urgency, id);
  };
  for (const auto& [name, client] : clients_) {
    for (const auto& [model, line] : client.lines) push(name, line, line.begin());
  }
  while (!heads.empty()) {
    const auto [lead, urgency, id] = *heads.begin();
    heads.erase(heads.begin());
    const Reply reply = ask(entries_.at(id).ticket);
    if (reply == Reply::kStop) return;
    if (reply == Reply::kPass) continue;
    const Ticket ticket = reply == Reply::kTake ? TakeFromLine(id) : entries_.at(id).ticket;
    const Client& client = clients_.at(ticket.client);
    const auto line = client.lines.find(ticket.model);
    if (line == client.lines.end()) continue;
    // The tickets before this one in the line were skipped too.
    push(ticket.client, line->second, line->second.upper_bound({urgency, id}));
  }
}

const Ticket* WaitingQueue::Find(TicketId id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second.ticket;
}

double WaitingQueue::WorkAheadOf(const Client& client, absl::Time urgency, Measure measure) const {
  double work = 0;
  for (const auto& [model, line] : client.lines) {
    for (const auto& [other, id] : line) {
      if (other > urgency) break;
      work += entries_.at(id).ticket.*measure;
    }
  }
  return work;
}

double WaitingQueue::WorkAhead(const Ticket& ticket, absl::Time now, Measure measure,
                               Started started) const {
  const absl::Time urgency = Urgency(ticket, now);
  const auto own = clients_.find(ticket.client);
  const double own_ahead = own == clients_.end() ? 0
                                                 : WorkAheadOf(own->second, urgency, measure) +
                                                       started(ticket.client, urgency);
  // The client's virtual time when the ticket's turn comes.
  const double turn = client_shares_.TimeOf(ticket.client) + own_ahead / ticket.weight;

  double ahead = own_ahead;
  for (const auto& [name, client] : clients_) {
    if (name == ticket.client) continue;
    const double behind = turn - client_shares_.TimeOf(name);
    // Seconds of the other client that go first whatever their urgency; the most that can go first.
    const double least = std::max(0.0, behind - slack_) * client.weight;
    const double most = std::max(0.0, behind + slack_) * client.weight;
    const double urgent =
        std::min(WorkAheadOf(client, urgency, measure) + started(name, urgency), most);
    const double all = client.sums.Of(measure) + started(name, absl::InfiniteFuture());
    ahead += std::min(all, std::max(urgent, least));
  }
  return ahead;
}

std::map<std::string, WaitingQueue::Client>::const_iterator WaitingQueue::Longest(
    Measure measure) const {
  return std::max_element(clients_.begin(), clients_.end(), [&](const auto& a, const auto& b) {
    return a.second.sums.Of(measure) < b.second.sums.Of(measure);
  });
}

double WaitingQueue::LongestBeside(const std::string& client, Measure measure) const {
  const auto longest = Longest(measure);
  const bool other = longest != clients_.end() && longest->first != client;
  return other ? longest->second.sums.Of(measure) : 0;
}

std::vector<TicketId> WaitingQueue::Displaceable(const std::string& client, double seconds,
                                                 double keep, Measure measure) const {
  const auto longest = Longest(measure);
  if (longest == clients_.end() || longest->first == client) return {};
  const double most = longest->second.sums.Of(measure);
  if (most - seconds < keep) return {};

  Order all;
  for (const auto& [model, line] : longest->second.lines) all.insert(line.begin(), line.end());
  std::vector<TicketId> chosen;
  double freed = 0;
  for (auto it = all.rbegin(); it != all.rend() && freed < seconds; ++it) {
    const double counts = entries_.at(it->second).ticket.*measure;
    if (counts <= 0) continue;
    freed += counts;
    chosen.push_back(it->second);
  }
  if (most - freed < keep) return {};
  return chosen;
}

double WaitingQueue::ClientSeconds(const std::string& client, Measure measure) const {
  const auto it = clients_.find(client);
  return it == clients_.end() ? 0 : it->second.sums.Of(measure);
}

}  // namespace longview::server
