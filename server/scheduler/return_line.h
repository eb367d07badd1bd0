// The order in which refused requests are asked to come back.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace longview::server {

// A request, or a list of them, that a client sends again if any of it was refused.
struct Returning {
  std::string client;
  absl::Time arrival = absl::InfinitePast();  // Requests that a client sent at it are one list.
  double seconds = 0;                         // Predicted, of all devices together.
};

// Gives each refused list the time at which the queue has room for it even if all that were refused
// before it come back at theirs. Without it, clients that wait for the same room return together,
// and all but one are refused again. Not thread-safe.
class ReturnLine {
 public:
  static constexpr absl::Duration kLongest = absl::Minutes(1);  // openai's clients obey no longer.
  static constexpr size_t kMost = 4096;  // Clients, and lists, that are remembered.

  // `limit`: seconds of work that may wait in the queue; at least one is meant.
  explicit ReturnLine(double limit) : limit_(std::max(limit, 1.0)) {}

  // The delay for a list for whose first refused request there is room after `room`. A list has one
  // time, however many of its requests are refused.
  // Half as long again as predicted, as predictions err, most of all after a start, and whoever
  // comes too early is refused again; at most kLongest.
  // One client keeps others back by `limit` seconds of refused work at most.
  absl::Duration Next(const Returning& list, absl::Duration room, absl::Time now);

  size_t remembered() const { return clients_.size() + starts_.size(); }

 private:
  struct Client {
    double seconds = 0;  // Refused work that is still to come back, as of `updated`.
    absl::Time updated = absl::InfinitePast();  // `seconds` falls by one every second from here on.
    absl::Time end = absl::InfinitePast();      // When the client's own refused work has run.
  };
  // The client's entry as of now; null if there are too many.
  Client* Find(const std::string& client, absl::Time now);
  absl::Time StartOf(const Returning& list, absl::Duration room, absl::Time now);

  const double limit_;
  absl::Time end_ = absl::InfinitePast();  // When all refused work has run.
  absl::flat_hash_map<std::string, Client> clients_;
  absl::flat_hash_map<std::pair<std::string, absl::Time>, absl::Time> starts_;  // Lists'.
};

}  // namespace longview::server
