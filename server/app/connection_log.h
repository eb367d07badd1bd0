// The log lines and counters of connections that the transports refuse or close.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/limits/connection_ends.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"

namespace longview::server {

// Counts every end; of ends that are alike a line is written at most once a second, since a client
// can cause thousands, with the number of those before it that have none. Thread-safe. Borrows both
// collaborators; outlives the transports.
class ConnectionLog {
 public:
  ConnectionLog(Metrics& metrics, Log& log) : metrics_(metrics), log_(log) {}

  // For the transport of this name: http, grpc or admin.
  ConnectionEnds For(std::string transport);

 private:
  struct Line {
    absl::Time last = absl::InfinitePast();
    int64_t unwritten = 0;
  };

  void Ended(const std::string& transport, EndCause cause, std::string_view address);

  Metrics& metrics_;
  Log& log_;
  absl::Mutex mutex_;
  std::map<std::pair<std::string, EndCause>, Line> lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
