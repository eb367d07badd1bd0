// How long a ticket waits for one of several devices.
#pragma once

#include <span>
#include <vector>

#include "absl/time/time.h"
#include "server/scheduler/lane.h"

namespace longview::server {

// The wait of a ticket that one of `lanes` will take, out of `alive` that share the queue.
class LaneWait {
 public:
  // REQUIRES: `lanes` is not empty, `alive` at least as many.
  LaneWait(std::span<const Lane* const> lanes, int alive, absl::Time now, bool generates);

  // Seconds until it starts behind so much waiting work, at the latest: as long as it waits no
  // device stands still, so that by then they have done all of it between them. A generating
  // ticket waits for no batch.
  double Behind(double work) const;

  // Seconds of what it will share its device with, on the average of the lanes.
  double beside() const { return beside_; }

 private:
  std::vector<double> busy_;  // Seconds until each lane can start a batch, rising.
  const int alive_;
  const bool generates_;
  double beside_ = 0;
};

}  // namespace longview::server
