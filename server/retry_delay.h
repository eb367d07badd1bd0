// How long a refused client is told to wait.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace longview::server {

// Spreads the delays of clients that are refused together, so that they do not come back together.
// Thread-safe.
class DelaySpread {
 public:
  // Refusals for the same reason are together if each follows the one before within this time.
  static constexpr absl::Duration kTogether = absl::Seconds(1);

  // `delay` for the first of those that are together, for the others up to twice as long, evenly
  // spread; in whole milliseconds, at least one. `reason`: ErrorDetail's. Those of "QUEUE_FULL" are
  // spread already (server/scheduler/return_line.h).
  absl::Duration Next(std::string_view reason, absl::Duration delay, absl::Time now);

 private:
  struct Refused {
    uint32_t count = 0;  // Together, so far.
    absl::Time last = absl::InfinitePast();
  };
  absl::Mutex mutex_;
  std::map<std::string, Refused, std::less<>> refused_ ABSL_GUARDED_BY(mutex_);
};

// DelaySpread::Next of the whole process, now. Every form of an answer says this delay.
// Thread-safe.
absl::Duration SpreadDelay(std::string_view reason, absl::Duration delay);

}  // namespace longview::server
