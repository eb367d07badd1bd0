// A clock that stands still until a test moves it. Not thread-safe.
#pragma once

#include <algorithm>

#include "server/scheduler/clock.h"

namespace longview::testing {

class FakeClock : public server::Clock {
 public:
  absl::Time Now() const override { return now_; }
  void Advance(double seconds) { now_ += absl::Seconds(seconds); }
  void AdvanceTo(absl::Time time) { now_ = std::max(now_, time); }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
};

}  // namespace longview::testing
