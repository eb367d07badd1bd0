#include "server/retry_delay.h"

#include <algorithm>
#include <cmath>

#include "server/scheduler/steady_clock.h"

namespace longview::server {

absl::Duration DelaySpread::Next(std::string_view reason, absl::Duration delay, absl::Time now) {
  // The fractions of its multiples fill [0, 1) evenly, however many there are.
  constexpr double kGolden = 0.6180339887498949;
  double turns = 0;
  if (reason != "QUEUE_FULL") {
    absl::MutexLock lock(&mutex_);
    auto found = refused_.find(reason);
    if (found == refused_.end()) found = refused_.emplace(std::string(reason), Refused()).first;
    Refused& refused = found->second;
    refused.count = now - refused.last <= kTogether ? refused.count + 1 : 0;
    refused.last = now;
    turns = refused.count * kGolden;
  }
  const absl::Duration spread = delay * (1 + turns - std::floor(turns));
  return std::max(absl::Ceil(spread, absl::Milliseconds(1)), absl::Milliseconds(1));
}

absl::Duration SpreadDelay(std::string_view reason, absl::Duration delay) {
  static DelaySpread& spread = *new DelaySpread();
  return spread.Next(reason, delay, SteadyNow());
}

}  // namespace longview::server
