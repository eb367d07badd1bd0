// Addresses whose new connections are refused for a moment, because what came over earlier ones
// cost more than the server could work off.
#pragma once

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/limits/connection_ends.h"

namespace longview::server {

// Not thread-safe. Times never decrease.
class ShutAddresses {
 public:
  explicit ShutAddresses(absl::Duration duration) : duration_(duration) {}

  // Shuts out `address` from `now` on for the duration. Whether it was let in before.
  bool Shut(const std::string& address, EndCause cause, absl::Time now);

  // Why `address` is shut out; none if it is let in.
  std::optional<EndCause> Find(const std::string& address, absl::Time now) const;

  // Addresses in memory. Those whose time is over go with the next that is shut out.
  size_t size() const { return shut_.size(); }
  absl::Duration duration() const { return duration_; }

 private:
  struct Entry {
    EndCause cause;  // The first one.
    absl::Time until;
  };

  const absl::Duration duration_;
  absl::flat_hash_map<std::string, Entry> shut_;
};

}  // namespace longview::server
