// The tickets that wait for a device, and whose turn it is; also how much everybody had, those
// included whose work goes on after they left the line.
//
// A pick goes from coarse to fine. Clients whose virtual time (see fair_shares.h) is within
// `slack` seconds of the lowest may be served; of the models these clients wait for, those
// within `slack` of the lowest; of the tickets that are left, the most urgent. So deadlines
// decide inside a window of fairness and never beyond it.
//
// Urgency is the deadline, or `patience` after arrival where that is sooner: a ticket without
// a deadline ages until nothing that comes later is more urgent.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/scheduler/fair_shares.h"
#include "server/scheduler/ticket.h"

namespace longview::server {

class WaitingQueue {
 public:
  // The seconds of a ticket that count: all of them, or those of its prompt.
  using Measure = double Ticket::*;

  WaitingQueue(double slack_seconds, absl::Duration patience)
      : slack_(slack_seconds), patience_(patience) {}

  // REQUIRES: the id is not waiting.
  void Add(const Ticket& ticket, absl::Time now);

  // Takes a ticket out without charging it. REQUIRES: waiting.
  Ticket Remove(TicketId id) { return Take(id, /*served=*/false); }

  // The next ticket among those that do not generate; null if none waits. Clients that only
  // generate hold nobody back here: they cannot use their share. Valid until the next change.
  const Ticket* Next() const;
  // The first to arrive among those that do not generate; null if none waits.
  const Ticket* Oldest() const;
  // The next of those that do not generate and take at most so many seconds: of the client that
  // had least, the most urgent. Null also where that one takes more than `seconds`, but at most
  // `soon`. `may` is asked last.
  const Ticket* NextShort(double seconds, double soon,
                          absl::FunctionRef<bool(const Ticket&)> may) const;
  // Seconds of the waiting tickets that do not generate and take at most `seconds` each.
  double ShortSeconds(double seconds) const;

  // Offers `first`, which `ask` takes, and then others of its model in the order of their turns.
  // Those that `ask` takes leave and are charged; where it passes, the client's other tickets are
  // not offered either, unless it skips. REQUIRES: `first` waits.
  enum class Reply { kTake, kPass, kSkip, kStop };
  void Serve(TicketId first, absl::FunctionRef<Reply(const Ticket&)> ask);

  // Offers generating tickets, of all models and clients: the one that came first, if it has waited
  // for `patience`; then by how much their clients had. Those it takes leave the line for work that
  // goes on: they are not charged, and their client and model keep their place among those that
  // want work.
  void Offer(absl::Time now, absl::FunctionRef<Reply(const Ticket&)> ask);
  // A step's share of such a ticket's work.
  void Charge(const Ticket& ticket, double seconds);
  // Notes that such a ticket's work is over.
  void Leave(const Ticket& ticket);

  double ModelTime(ModelId model) const { return model_shares_.TimeOf(model); }
  // How far the client is ahead of those it may be served with; 0 if it is one of them.
  double Lead(const std::string& client) const {
    return std::max(0.0, client_shares_.TimeOf(client) - client_shares_.floor() - slack_);
  }

  const Ticket* Find(TicketId id) const;
  // REQUIRES: waiting.
  absl::Time Urgency(TicketId id) const { return entries_.at(id).urgency; }
  // The time at which the ticket has waited for `patience`. REQUIRES: waiting.
  absl::Time Aged(TicketId id) const { return entries_.at(id).arrival + patience_; }

  // Work that would be served before a ticket like this if nothing else came: what its own
  // client has waiting in front of it, and of other clients what is more urgent, as far as
  // fairness lets them pass. `started`: what a client has out of the line that waits as well, as
  // urgent as `until`.
  using Started = absl::FunctionRef<double(const std::string& client, absl::Time until)>;
  double WorkAhead(const Ticket& ticket, absl::Time now, Measure measure, Started started) const;

  // The least urgent tickets of the client with most work waiting, as few as free `seconds`,
  // if it keeps at least `keep` seconds; else none. Never of `client` itself.
  std::vector<TicketId> Displaceable(const std::string& client, double seconds, double keep,
                                     Measure measure) const;

  double ClientSeconds(const std::string& client, Measure measure) const;
  // Waiting seconds of the client with most work waiting; 0 if that is `client` itself.
  double LongestBeside(const std::string& client, Measure measure) const;
  double Seconds(Measure measure) const { return sums_.Of(measure); }
  double seconds() const { return sums_.seconds; }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  // Count of the generating ones, the bytes they will reserve, and their seconds beyond prompts.
  size_t generating() const { return generating_; }
  double generating_bytes() const { return generating_bytes_; }
  double decode_seconds() const { return decode_seconds_; }

  // Clients and models remembered; for tests of what is left behind.
  size_t remembered() const { return client_shares_.size() + model_shares_.size(); }

 private:
  using Order = std::set<std::pair<absl::Time, TicketId>>;  // Most urgent first.

  struct Entry {
    Ticket ticket;
    absl::Time urgency;
    absl::Time arrival;
  };
  struct Sums {
    double seconds = 0, prompt_seconds = 0;
    void Add(const Ticket& ticket, int sign) {
      seconds += sign * ticket.seconds;
      prompt_seconds += sign * ticket.prompt_seconds;
    }
    double Of(Measure measure) const {
      return measure == &Ticket::prompt_seconds ? prompt_seconds : seconds;
    }
  };
  struct Client {
    std::map<ModelId, Order> lines;  // None empty.
    Sums sums;                       // Tickets in the lines.
    double weight = 1;
    size_t count = 0;  // Waiting, or out of the line with work that goes on.
  };

  // The client with most work waiting; the end if there is none.
  std::map<std::string, Client>::const_iterator Longest(Measure measure) const;
  Ticket TakeFromLine(TicketId id);
  Ticket Take(TicketId id, bool served);
  absl::Time Urgency(const Ticket& ticket, absl::Time now) const;
  double WorkAheadOf(const Client& client, absl::Time urgency, Measure measure) const;
  // The highest virtual time with which a client may be served.
  double WindowEnd() const;
  bool WaitsForBatch(const Client& client) const;
  // Calls visit(client) for the clients that may be served.
  template <typename Visit>
  void ForEachInWindow(Visit visit) const;

  const double slack_;
  const absl::Duration patience_;
  absl::flat_hash_map<TicketId, Entry> entries_;
  Order arrivals_;                                 // Arrivals of tickets that do not generate.
  std::set<std::pair<double, TicketId>> lengths_;  // Seconds of tickets that do not generate.
  Order joins_;                                    // Arrivals of generating tickets.
  std::map<std::string, Client> clients_;          // Clients that want work.
  std::map<ModelId, size_t> model_counts_;
  FairShares<std::string> client_shares_;
  FairShares<ModelId> model_shares_;
  Sums sums_;
  size_t generating_ = 0;  // Generating ones in entries_.
  double generating_bytes_ = 0;
  double decode_seconds_ = 0;
};

}  // namespace longview::server
