// The time, passed in, so that tests can own it.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace longview::server {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

class SystemClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

}  // namespace longview::server
