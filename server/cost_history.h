// What requests of one model turned out to cost: foresight for those whose cost is not known yet,
// and a correction of what the model predicts.
//
// Expected: seconds per byte of request, from those prepared before. Requests differ, and the model
// has not seen this one, so only half of that is expected, and never more than half of the dearest
// of late: a text that will be cut, or a picture that will be shrunk, has many bytes that cost
// nothing.
//
// Pace: models predict from what they measured when they were loaded. Where other work has the
// cores too, batches take longer; how much longer of late is what predictions are multiplied with,
// so that what waits takes about as long as is said of it. While nothing is computed it is
// forgotten: nobody may be refused for ever because of a load that has gone.
// Not thread-safe.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace longview::server {

class CostHistory {
 public:
  // A request of so many bytes was prepared, and the model predicts so many seconds for it.
  void Prepared(size_t bytes, double predicted_seconds);

  // A batch for which the model predicted so many seconds took so many, until `now`.
  void Computed(double predicted_seconds, double seconds, absl::Time now);

  // What a request of so many bytes will take as the model would predict it; 0 = nothing is known.
  double Expected(size_t bytes) const;

  // Seconds that work takes over those predicted by the model; 1 to 10.
  double PaceAt(absl::Time now) const;

 private:
  // Of the requests prepared, the last ones counting most.
  double bytes_ = 0;
  double seconds_ = 0;
  double dearest_ = 0;
  double pace_ = 1;
  absl::Time computed_ = absl::InfinitePast();  // When pace_ was found.
};

}  // namespace longview::server
