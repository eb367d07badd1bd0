#include "server/scheduler/lane_wait.h"

#include <algorithm>

namespace longview::server {

LaneWait::LaneWait(std::span<const Lane* const> lanes, int alive, absl::Time now, bool generates)
    : alive_(alive), generates_(generates) {
  const auto count = static_cast<double>(lanes.size());
  double left = 0, until_end = 0;
  for (const Lane* lane : lanes) {
    busy_.push_back(lane->BusySeconds(now));
    left += lane->running_set.LeftSeconds();
    until_end += busy_.back();
  }
  std::sort(busy_.begin(), busy_.end());
  beside_ = left / count + (generates ? until_end / count : 0);
}

double LaneWait::Behind(double work) const {
  if (generates_) return work / alive_;
  // Devices join the work in the order in which they become free, until all of it is done before
  // the next one would.
  double sum = work;
  double start = 0;
  for (size_t devices = 1; devices <= busy_.size(); ++devices) {
    sum += busy_[devices - 1];
    start = sum / static_cast<double>(devices);
    if (devices < busy_.size() && start <= busy_[devices]) break;
  }
  return start;
}

}  // namespace longview::server
