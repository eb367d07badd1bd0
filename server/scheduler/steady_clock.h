// The clock that nobody sets.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/scheduler/clock.h"

namespace longview::server {

// Now, on a clock that nobody sets: what the wall clock said when this was first called, plus the
// time since. Arrivals, deadlines and whatever is compared with them are of this clock, so that a
// step of the wall clock neither expires nor prolongs anything. Not for dates.
inline absl::Time SteadyNow() {
  static const absl::Duration kOffset =
      absl::Now() - absl::UnixEpoch() -
      absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  return absl::UnixEpoch() + kOffset +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Thread-safe.
class SteadyClock : public Clock {
 public:
  absl::Time Now() const override { return SteadyNow(); }
};

}  // namespace longview::server
