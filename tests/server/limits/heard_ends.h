// Hears of the connections that a transport refuses or closes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/limits/connection_ends.h"

namespace longview::testing {

// Thread-safe. Outlives the transport.
class HeardEnds {
 public:
  server::ConnectionEnds Listener() {
    return [this](server::EndCause cause, std::string_view address) {
      absl::MutexLock lock(&mutex_);
      heard_.push_back({cause, std::string(address)});
    };
  }

  // Ends of connections of 127.0.0.1.
  int Count(server::EndCause cause) {
    absl::MutexLock lock(&mutex_);
    int count = 0;
    for (const End& end : heard_) count += end.cause == cause && end.address == "127.0.0.1";
    return count;
  }

 private:
  struct End {
    server::EndCause cause;
    std::string address;
  };
  absl::Mutex mutex_;
  std::vector<End> heard_;
};

// A base that lives longer than a fixture's server.
struct WithHeardEnds {
  HeardEnds ends;
};

}  // namespace longview::testing
