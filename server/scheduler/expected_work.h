// Work that was accepted before its cost is known: what it is expected to take, and whose it is.
// Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "server/scheduler/ticket.h"

namespace longview::server {

class ExpectedWork {
 public:
  // REQUIRES: the id is not expected.
  void Add(TicketId id, const std::string& client, double seconds) {
    expected_.emplace(id, std::pair(client, seconds));
    Client& sum = clients_[client];
    ++sum.count;
    sum.seconds += seconds;
    seconds_ += seconds;
  }

  // REQUIRES: expected.
  void Remove(TicketId id) {
    const auto node = expected_.extract(id);
    const auto& [name, seconds] = node.mapped();
    const auto client = clients_.find(name);
    client->second.seconds -= seconds;
    seconds_ -= seconds;
    // Rounding errors of the sums must not outlive the work.
    if (--client->second.count == 0) clients_.erase(client);
    if (expected_.empty()) seconds_ = 0;
  }

  double seconds() const { return seconds_; }
  double OfClient(const std::string& client) const {
    const auto it = clients_.find(client);
    return it == clients_.end() ? 0 : it->second.seconds;
  }

  size_t size() const { return expected_.size(); }

 private:
  struct Client {
    size_t count = 0;
    double seconds = 0;
  };

  absl::flat_hash_map<TicketId, std::pair<std::string, double>> expected_;
  std::map<std::string, Client> clients_;
  double seconds_ = 0;
};

}  // namespace longview::server
